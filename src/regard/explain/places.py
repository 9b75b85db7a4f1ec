"""Which tokens of a text are meant: a word, one of its occurrences, or a token by its number.

An occurrence is a `Word` (`trace.word("bank")[1]`), or the word and its number, `("bank", 1)`.
"""

from regard.errors import RegardError
from regard.text.words import Place as Place  # defined below, as interventions name their places by it as well
from regard.text.words import Word, only_word
from regard.trace.trace import PairTrace, Trace


def tokens_of(trace: Trace, place: Place) -> list[int]:
    """The numbers of the tokens meant."""
    refuse_pairs(trace)
    if isinstance(place, Word):
        return list(place.tokens)
    if isinstance(place, (str, tuple)):
        return list(only_word(trace.text, trace.tokens, place).tokens)
    if not 0 <= place < len(trace.tokens):
        raise RegardError(f"token {place} is out of range: the text has tokens 0 to {len(trace.tokens) - 1}")
    return [place]


def place_in(trace: Trace, given: str) -> Place:
    """A word that occurs once, by its text, or a token by its number where the text has no such word."""
    try:
        return trace.word(given)[0] if len(trace.word(given)) == 1 else given
    except RegardError:
        if given.isdecimal():
            return int(given)
        raise


def refuse_pairs(trace: Trace) -> None:
    """Refuse the whole trace of an encoder-decoder, and what is no trace, where the trace of one text is needed."""
    if isinstance(trace, PairTrace):
        raise RegardError(f"{trace.status.model} is an encoder-decoder: give its trace's .encoder or .decoder")
    if not isinstance(trace, Trace):
        kind = type(trace).__name__
        windows = ": one of its .windows, or what .locate leads to" if kind == "WindowedTrace" else ""
        raise RegardError(f"given {kind}, needs the trace of one text{windows}")
