"""Explain attention weights: attended tokens, scores of heads, attention sinks, and word alignment of two texts."""
