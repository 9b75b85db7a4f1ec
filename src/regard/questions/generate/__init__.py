"""Text that a causal model wrote, plain or with steered states."""
