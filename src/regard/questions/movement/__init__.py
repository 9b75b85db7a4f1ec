"""A followed word's way through the layers, and what texts do to it beside reference words: a part of `see`."""
