"""Record which words of a prompt each position of an image attends to in a diffusers pipeline."""
