"""Format recurring parts of sentences: tokens, words, lists, numbers, and the names of heads and hidden states."""

import re
from collections.abc import Sequence

from regard.errors import RegardError
from regard.text.quoting import quoted as quoted
from regard.text.tokens import Token
from regard.text.words import Place as Place
from regard.text.words import Word, only_word, spelling, words
from regard.trace.trace import PairTrace, Trace

ROUNDING = 1e-6  # numbers closer to 1 count as 1, because sums of float32 weights differ from 1 by less


def listed(parts: Sequence[str]) -> str:
    """Join words as in a sentence: "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}" if parts else ""


def short_head(layer: object, head: object) -> str:
    """Name a head in a table, list or tile: L0H2 is head 2 of layer 0."""
    return f"L{layer}H{head}"


def weight_and_head(weight: float, layer: int, head: int) -> str:
    """Return a link's weight and head in brackets, to follow the name of its key."""
    return f"({number(weight)}, layer {layer}, head {head})"


def mean_or_head(head: int | None) -> str:
    """Return "head 3" for a head, or "mean of heads" for None."""
    return "mean of heads" if head is None else f"head {head}"


def count_of_tokens(count: int) -> str:
    """Format a number of tokens for a sentence: "1 token", "1,200 tokens"."""
    return "1 token" if count == 1 else f"{count:,} tokens"


def capital(sentence: str) -> str:
    """Capitalize the first letter of a sentence about a result."""
    return sentence[:1].upper() + sentence[1:]


def number(value: float, form: str | None = None) -> str:
    """Format a fraction or a cosine with two decimals: 0.31, <0.01, >0.99, −0.31.

    form: a Python format for other numbers, such as ".4g". A number that rounds to 0 has no sign.
    """
    return fixed(value, 2) if form is None else f"{value:z{form}}".replace("-", "−")


def fixed(value: float, digits: int, unbounded: bool = False) -> str:
    """Format a number with `digits` decimals. A fraction near 0 or 1 becomes "<0.01" or ">0.99".

    unbounded: the number isn't a fraction, such as a score. The page has the same rule: `web/src/parts/numbers.ts`.
    """
    text = number(value, f".{digits}f")
    if unbounded or value <= 0:
        return text
    if not float(text):
        return f"<{10**-digits:.{digits}f}"
    return f">{1 - 10**-digits:.{digits}f}" if digits > 1 and float(text) == 1 and value < 1 - ROUNDING else text


def in_plot(value: float, digits: int) -> str:
    """Format a number for a narrow cell of a plot, like `fixed` but without the 0 before the point."""
    return re.sub(r"^(\D*)0\.", r"\1.", fixed(value, digits))


def signed(value: float, form: str = ".2f") -> str:
    """Format a number with its sign: +0.31, −0.40. 0.00 has no sign. form: a Python format."""
    text = number(value, form)
    return "+" + text if value > 0 and float(text) != 0 else text


def exactly_split(parts: str, total: str, error: float) -> str:
    """Report how exactly components sum to a whole. error: relative to the sum of their absolute values."""
    size = f"{error:.1e} of their total size"
    return f"The {parts} sum to the {total} within {size}. Normalization statistics are frozen."


def named(tokens: Sequence[Token], number: int) -> str:
    """Quote a token for a sentence. If it is a piece of a word, also quote the word."""
    word = next(span for span in words(tokens) if number in span)
    return quoted(tokens[number].text) + (f" of {quoted(spelling(tokens, word))}" if len(word) > 1 else "")


def numbered(tokens: Sequence[Token], number: int) -> str:
    """Quote a token like `named`, and add its number if another token of the text is spelled the same.

    In a chat, add its message as well: “bank” (27, user 1).
    """
    same = [token.text.strip() for token in tokens].count(tokens[number].text.strip())
    return named(tokens, number) + place_in_brackets(tokens, number, same > 1)


def place_in_brackets(tokens: Sequence[Token], number: int, numbered: bool = True) -> str:
    """Return a token's number and its message in a chat, in brackets to follow its name, or "" if both are missing."""
    text = ", ".join(part for part in (str(number) if numbered else "", tokens[number].turn) if part)
    return f" ({text})" if text else ""


def word_numbered(tokens: Sequence[Token], word: Sequence[int], called: str) -> str:
    """Quote a word for a sentence, with its message in a chat, and its first token's number if it is repeated."""
    others = [spelling(tokens, span).casefold() for span in words(tokens) if set(span).isdisjoint(word)]
    return quoted(called) + place_in_brackets(tokens, word[0], called.casefold() in others)


def called(token: int, tokens: Sequence[Token]) -> str:
    """Return a token's text, with its number if the token is repeated, and with its message in a chat."""
    text = tokens[token].text
    return text + place_in_brackets(tokens, token, [other.text for other in tokens].count(text) > 1)


def state_name(n: int) -> str:
    """Name a hidden state by the layer that it enters or leaves: "enters layer 0", "after layer 3"."""
    return "enters layer 0" if n == 0 else f"after layer {n - 1}"


def tokens_of(trace: Trace, place: Place) -> list[int]:
    """Return the token numbers of a place: a word, an occurrence or a token's number."""
    refuse_pairs(trace)
    if isinstance(place, Word):
        return list(place.tokens)
    if isinstance(place, (str, tuple)):
        return list(only_word(trace.text, trace.tokens, place).tokens)
    if not 0 <= place < len(trace.tokens):
        raise RegardError(f"token {place} is out of range: the text has tokens 0 to {len(trace.tokens) - 1}")
    return [place]


def place_in(trace: Trace, name: str) -> Place:
    """Return the place that a user names: a word, or a token's number if the text has no such word."""
    try:
        return trace.word(name)[0] if len(trace.word(name)) == 1 else name
    except RegardError:
        if name.isdecimal():
            return int(name)
        raise


def refuse_pairs(trace: Trace) -> None:
    """Raise RegardError for traces of more than a single text: encoder-decoder pairs and windows."""
    if isinstance(trace, PairTrace):
        raise RegardError(f"{trace.status.model} is an encoder-decoder: pass its trace's .encoder or .decoder")
    if not isinstance(trace, Trace):
        kind = type(trace).__name__
        windows = ": one of its .windows, or what .locate leads to" if kind == "WindowedTrace" else ""
        raise RegardError(f"got {kind}, expected the trace of one text{windows}")
