"""What pictures are put together from: canvas, colours, cells, arcs, names that lie on no other."""
