"""Watch one forward pass of a model, whatever its family, and build traces of it: `session` is the way in."""
