"""Generate text with a model and trace it, for `Model.generate`."""
