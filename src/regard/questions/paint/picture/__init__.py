"""Pictures of what is painted: under its heat, and on a run's way."""
