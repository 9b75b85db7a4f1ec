"""Ways to look at what `explain` found: terminal, pictures. Nothing here computes or reaches into a model."""
