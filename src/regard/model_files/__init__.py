"""What a model's files say, read as data and checked before anything is built of them."""
