"""Sentences held against the numbers beside them: random answers, each sentence parsed by its own template."""
