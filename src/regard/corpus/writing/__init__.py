"""Write documents into shards of an embedding index: words, windows, forward passes, tables, files."""
