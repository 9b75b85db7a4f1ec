"""Show answers as panels of data, which a terminal, matplotlib figures and the interactive page each draw."""
