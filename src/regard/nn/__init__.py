"""Layers and transformers of one's own, to build, train and trace; all attention goes through `regard.attend`."""
