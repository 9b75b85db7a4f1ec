"""Causes of an outcome: a next token's logit, or the similarity of two words."""
