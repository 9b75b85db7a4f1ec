"""Verify regard's numbers for a model on this machine."""
