"""Traces, the named values of one forward pass for one text, and the files in which they are saved."""
