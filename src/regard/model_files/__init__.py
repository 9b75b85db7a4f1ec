"""Read a model's files as data, and check them before anything is built from them."""
