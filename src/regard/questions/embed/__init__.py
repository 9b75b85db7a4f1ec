"""What was read into a store, and what was left out."""
