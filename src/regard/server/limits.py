"""Say how much one server does at most: of a request's bytes, of a text, of what waits, of time and of memory."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What is refused with a status of 4xx and one line that names the limit.

    body: bytes of a request. characters: of all its texts. texts: how many. waiting: requests that wait for the model.
    seconds: of one request's work, its waiting not counted. memory: bytes that one answer may take, as it is foreseen.
    kept: bytes of traces that are held to be looked at; what was not looked at for the longest goes first. whole:
    tokens of a text up to which a browser gets queries and keys to compute with; of longer ones it gets tiles.
    occurrences: of a word whose path is followed, each two compared.
    """

    body: int = 8_000_000
    characters: int = 2_000_000
    texts: int = 16
    waiting: int = 16
    seconds: float = 300.0
    memory: int = 8_000_000_000
    kept: int = 600_000_000
    whole: int = 4_096
    occurrences: int = 100
