"""The picture of a word's way: how near it is to reference words, layer by layer, and its plane."""
