"""Load pretrained models in Hugging Face format, and trace texts with them."""
