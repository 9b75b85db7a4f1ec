"""Kernels: each computes output and logsumexp of one attention call; `dispatch` chooses among them."""
