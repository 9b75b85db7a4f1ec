"""Paint what a line of words says, and show which word painted what."""
