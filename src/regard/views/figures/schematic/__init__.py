"""Schematic figures of attention, transformers and word2vec, to scale and with the real numbers."""
