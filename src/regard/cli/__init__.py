"""The command: one small file per verb, nothing but arguments and calls."""
