"""What would each layer say, if those that remain did nothing."""
