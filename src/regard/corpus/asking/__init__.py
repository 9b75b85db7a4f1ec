"""Answer questions about a store: occurrences, senses, change, heads."""
