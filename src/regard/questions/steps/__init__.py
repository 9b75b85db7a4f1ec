"""A word's way through one head: scores, weights, weighted values and their sum."""
