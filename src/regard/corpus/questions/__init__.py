"""Answer questions about an embedding index: a word's occurrences, senses and change of meaning."""
