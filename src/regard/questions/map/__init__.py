"""One layer's attention over a whole text: how far tokens look, who receives most, which pairs are far apart."""
