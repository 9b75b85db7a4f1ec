"""Differentiate forward passes, and split scores and outcomes by the components that they are linear in."""
