"""Where a word occurs in a store, each in its context."""
