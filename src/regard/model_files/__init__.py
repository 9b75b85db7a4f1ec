"""Read a model's files as data, and check them before building a model from them."""
