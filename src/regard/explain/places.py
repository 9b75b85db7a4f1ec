"""Which tokens of a text are meant: a word, one of its occurrences, or a token by its number.

An occurrence is a `Word` (`trace.word("bank")[1]`), or the word and its number, `("bank", 1)`.
"""

from regard.errors import RegardError
from regard.text.words import Word, only_word
from regard.trace.trace import PairTrace, Trace

Place = str | Word | int | tuple[str, int]


def tokens_of(trace: Trace, place: Place) -> list[int]:
    """The numbers of the tokens meant.

    Raises:
        RegardError: the word is not in the text or occurs several times, or there is no token of that number; or the
            trace is the whole one of an encoder-decoder, of which one side is needed.
    """
    refuse_pairs(trace)
    if isinstance(place, Word):
        return list(place.tokens)
    if isinstance(place, (str, tuple)):
        return list(only_word(trace.text, trace.tokens, place).tokens)
    if not 0 <= place < len(trace.tokens):
        raise RegardError(f"token {place} is out of range: the text has tokens 0 to {len(trace.tokens) - 1}")
    return [place]


def refuse_pairs(trace: Trace) -> None:
    """Refuse the whole trace of an encoder-decoder, and what is no trace, where the trace of one text is needed."""
    if isinstance(trace, PairTrace):
        raise RegardError(f"{trace.status.model} is an encoder-decoder: give its trace's .encoder or .decoder")
    if not isinstance(trace, Trace):
        kind = type(trace).__name__
        windows = ": one of its .windows, or what .locate leads to" if kind == "WindowedTrace" else ""
        raise RegardError(f"given {kind}, needs the trace of one text{windows}")
