"""How tokenizers split texts."""
