"""Hidden states, embeddings and positions as vectors: how alike they are, and how a word moves from layer to layer."""
