"""Find the tokens that an intervention names: words, occurrences, or numbers of tokens."""

from collections.abc import Sequence
from typing import Any

from regard.checks import is_whole
from regard.errors import RegardError
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.text.words import Place, Word, find_word, is_word, only_word

Places = tuple[Place, ...]

MAX_LISTED_PLACES = 8  # places that a status names


def places_of_intervention(name: str, value: Any) -> Places | None:
    """The places of an argument: one, a list of them, or None for all positions."""
    if value is None:
        return None
    places = list(value) if isinstance(value, (list, range, set)) else [value]
    if isinstance(value, tuple) and not is_word(value):
        places = list(value)
    if not places:
        raise RegardError(f"{name}: given none, needs at least one place, or None for all positions")
    for place in places:
        if not is_word(place) and (not is_whole(place) or int(place) < 0):
            needs = 'a word, an occurrence such as ("bank", 1), the number of a token, or a list of these'
            raise RegardError(f"{name}: given {place!r}, needs {needs}")
    return tuple(places)


def tokens_at(name: str, text: str, tokens: Sequence[Token], places: Places | None) -> tuple[int, ...]:
    """The numbers of the tokens at places of a text, place by place; a word stands for all its occurrences.

    name: of the argument, for messages.
    """
    if places is None:
        return tuple(range(len(tokens)))
    numbers: list[int] = []
    for place in places:
        if isinstance(place, (str, Word, tuple)):
            words = find_word(text, tokens, place) if isinstance(place, str) else [only_word(text, tokens, place)]
            numbers += sorted({token for word in words for token in word.tokens})
        elif not 0 <= int(place) < len(tokens):
            raise RegardError(f"{name}: token {place} is out of range, the text has tokens 0 to {len(tokens) - 1}")
        else:
            numbers.append(int(place))
    if len(set(numbers)) < len(numbers):
        raise RegardError(f"{name}: names token {next(n for n in numbers if numbers.count(n) > 1)} twice")
    return tuple(numbers)


def written(places: Places | None) -> str:
    """How places are said in a status."""
    if places is None:
        return "all positions"
    if len(places) > MAX_LISTED_PLACES:
        return f"{len(places)} places"
    return ", ".join(f"token {place}" if is_whole(place) else named_place(place) for place in places)


def named_place(place: Place) -> str:
    """A place in a sentence: “bank”, “bank” (occurrence 1), or the number of a token."""
    if isinstance(place, tuple):
        return f"{quoted(place[0])} (occurrence {place[1]})"
    return str(place) if is_whole(place) else quoted(place.text if isinstance(place, Word) else str(place))
