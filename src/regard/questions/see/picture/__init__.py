"""Draw the plot of `regard see` for a word, for whole texts, or for a text and its target."""
