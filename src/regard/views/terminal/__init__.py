"""Tables and lines for a terminal of what `regard.explain` found, one module a question."""
