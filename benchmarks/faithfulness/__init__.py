"""Which explanation is right: how well methods that explain predict what removing a word truly does."""
