"""Query an embedding index: occurrences, their vectors, clusters and change between groups."""
