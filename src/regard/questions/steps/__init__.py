"""All numbers of a word in a head, step by step."""
