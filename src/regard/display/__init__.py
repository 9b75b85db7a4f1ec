"""Show any answer: panels are data, which a terminal, a picture and a page each draw."""
