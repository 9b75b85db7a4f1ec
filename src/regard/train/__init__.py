"""Training a transformer of one's own: settings, data, loop, checkpoints, and what is watched on the way."""
