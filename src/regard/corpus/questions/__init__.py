"""Queries to a store: a word's occurrences, senses and change of meaning, and the nearest texts."""
