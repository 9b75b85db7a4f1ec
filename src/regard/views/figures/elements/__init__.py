"""What pictures are made of: the canvas and its file, colours, names, cells of weights, arcs."""
