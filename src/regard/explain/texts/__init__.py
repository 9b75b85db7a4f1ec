"""Summarise texts and the occurrences of a followed word, and find what is most worth showing."""
