"""Look: where on a picture a model looks."""
