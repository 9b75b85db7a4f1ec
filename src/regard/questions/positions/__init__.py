"""What a positional encoding adds to a text, turns in it, or takes off its scores."""
