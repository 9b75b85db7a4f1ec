"""Which tokens of a text nobody looks at, all heads taken together."""
