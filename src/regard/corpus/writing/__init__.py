"""Turn documents into shards: words, windows, forward passes, tables, files."""
