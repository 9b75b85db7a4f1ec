"""Attention weights: rows of weights, heads by what they follow, attention sinks, word alignment across two texts."""
