"""Let a model write, and join its passes to one trace: `generate` is the way in."""
