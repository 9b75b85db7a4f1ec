"""Read images for vision models, and find where on an image a model attends."""
