"""How does a tokenizer read a text."""
