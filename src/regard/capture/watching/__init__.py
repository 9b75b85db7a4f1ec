"""See the attention calls of any PyTorch module while it computes them."""
