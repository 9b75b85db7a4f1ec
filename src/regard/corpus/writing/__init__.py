"""Write documents into shards of an embedding index: find words, cut windows, run the model, write tables."""
