"""Many texts: embed them once, keep what every word's embedding and attention were, and ask the store about it."""
