"""Open GGUF files with `regard.load`."""
