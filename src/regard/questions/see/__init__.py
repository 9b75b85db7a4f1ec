"""Show what attention does to a word, or to every token of texts."""
