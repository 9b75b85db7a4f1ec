"""Show one layer's whole attention matrix: mean distances, tokens that receive most, and distant links."""
