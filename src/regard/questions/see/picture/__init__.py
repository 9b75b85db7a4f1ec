"""Draw the plot of `regard see`: of a word, of whole texts, or of a text and its target."""
