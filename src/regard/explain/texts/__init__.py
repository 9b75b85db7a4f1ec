"""A followed word and whole texts: its occurrences, what is most worth a look, and all that `regard see` shows."""
