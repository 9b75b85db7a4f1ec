"""`Trace`, what one forward pass computed for one text, by name; and the file that it is saved to."""
