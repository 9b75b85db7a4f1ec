"""Open GGUF files with `regard.load`, as one kind of model file."""
