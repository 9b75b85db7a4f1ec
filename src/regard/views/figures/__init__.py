"""Pictures (PNG, SVG) of what `regard.explain` found, one module a question."""
