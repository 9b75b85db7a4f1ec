"""Errors that a person can act on."""


class RegardError(ValueError):
    """Bad input, in one line: what was given and what is needed. The command prints it and exits with 2."""


class OutOfRangeError(RegardError, IndexError):
    """A number beyond a sequence: bad input, and the end of the sequence for whoever walks along it."""
