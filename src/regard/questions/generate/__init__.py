"""Let a causal model continue a text, plain or steered, and show the probability of each token."""
