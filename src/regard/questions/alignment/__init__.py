"""Which words of a text a translation's words come from."""
