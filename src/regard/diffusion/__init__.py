"""Record how each position of an image attends to the words of its prompt in a diffusers pipeline."""
