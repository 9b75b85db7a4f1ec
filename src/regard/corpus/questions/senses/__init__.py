"""The senses of a word in a store: clusters of its occurrences, and what in their contexts tells them."""
