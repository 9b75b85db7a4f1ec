"""Exact attention whose weights can be seen: `attend.attend` computes it, `reference.py` defines it."""
