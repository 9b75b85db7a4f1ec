"""How attention formed while a model was trained, and how the training went."""
