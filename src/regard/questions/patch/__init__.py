"""Patch activations of one text into the run of another, and measure how far each patch moves the outcome."""
