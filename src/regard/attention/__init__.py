"""Exact attention with access to its weights. `attend.attend` computes it, `reference.py` defines it."""
