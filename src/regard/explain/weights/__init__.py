"""Who attends to whom: rows of attention weights, heads by what they follow, sinks, words aligned across two texts."""
