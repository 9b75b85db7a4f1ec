"""What the lessons draw, to scale with the real numbers: attention, transformers, word2vec; pictures kept as files."""
