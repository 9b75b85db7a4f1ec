"""Traces, which hold the named values of a text's forward pass, and the files that store them."""
