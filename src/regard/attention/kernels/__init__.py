"""Kernels that compute output and logsumexp of one attention call. `dispatch` chooses one of them."""
