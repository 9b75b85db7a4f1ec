"""Load pretrained models of the Hugging Face kind, and trace texts with them."""
