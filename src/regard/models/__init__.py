"""Models that can be traced: pretrained ones of the Hugging Face kind, through `load.load`."""
