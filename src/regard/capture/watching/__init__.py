"""Observe the attention calls of any PyTorch module as it computes them."""
