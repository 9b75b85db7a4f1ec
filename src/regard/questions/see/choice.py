"""State in a line why a picture shows a head: the weight that was chosen, or the strongest link of the head."""

from collections.abc import Sequence

from regard.explain.texts.highlights import Link
from regard.explain.weights.specific_weights import SpecificWeight
from regard.explain.wording import number, place_in_brackets, quoted
from regard.text.quoting import short
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike

LONGEST = 16  # characters of a token's name


def word_choice(best: SpecificWeight, tokens: Sequence[Token], *, chosen: bool = True) -> str:
    """Say what a word gives in the head that is drawn, and what is expected there.

    chosen: layer and head were not both asked for.
    """
    given = f"{quoted(short(spelling(tokens, best.queries), LONGEST))} gives {_token_name(tokens, best.key)}"
    expected = f"(others at that distance {number(best.by_distance)}, to that token {number(best.by_key)})"
    return f"{'chosen: ' if chosen else ''}{given} {number(best.weight)} {expected}"


def framed_link(link: Link | None, tokens: Sequence[Token]) -> str:
    """Say which link across words is the strongest of a head; "" if there is none."""
    if link is None:
        return ""
    looks = f"{_token_name(tokens, link.query)} looks at {_token_name(tokens, link.key)} {number(link.weight)}"
    return f"framed: {looks}, its strongest link of words that are no neighbours"


def _token_name(tokens: Sequence[Token], number: int) -> str:
    """A token in a title, with its number if words or numbers of the text are called the same."""
    text = tokens[number].text.strip()
    name = text if tokens[number].special else quoted(short(text, LONGEST))
    twice = wordlike(text) and sum(token.text.strip() == text for token in tokens) > 1
    return name + place_in_brackets(tokens, number, twice)
