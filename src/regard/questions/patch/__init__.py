"""What patches of one text's run with another's do to an outcome."""
