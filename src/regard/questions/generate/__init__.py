"""What a causal model wrote, plain or with its states steered."""
