"""Define and apply interventions in a forward pass: ablations, patches and steering."""
