"""`Trace`: what one forward pass did to one text, by name; and the file that it is saved to."""
