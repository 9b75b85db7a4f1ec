"""Find the senses of a word in an embedding index, and the context words that mark them."""
