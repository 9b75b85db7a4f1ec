"""GGUF files as a kind of model that `regard.load` opens."""
