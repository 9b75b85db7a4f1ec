"""Let a causal model continue a text, plain or steered, and show how sure it was of each token."""
