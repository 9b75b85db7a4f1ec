"""What is done to a forward pass, and how it is applied: ablations, patches and steering."""
