"""Compare hidden states, embeddings and positions as vectors, and follow a word's movement from layer to layer."""
