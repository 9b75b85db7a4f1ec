"""Ways to look at what `explain` found: terminal, pictures, JSON. Nothing here computes or reaches into a model."""
