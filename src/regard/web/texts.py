"""Write a text with its tokens, its direction, and which of its tokens are special or attention sinks."""

from collections.abc import Iterable, Sequence

from regard.text.direction import direction
from regard.text.tokens import Token
from regard.text.word_pieces import words
from regard.web.score_rules import Data


def text_data(name: str, text: str, tokens: Sequence[Token], sinks: Iterable[int] = ()) -> Data:
    """Write a text. name: "text 1", "source". sinks: the numbers of the tokens that are attention sinks."""
    own = [word for word in words(tokens) if not tokens[word[0]].special]
    numbers = {n: number for number, word in enumerate(own) for n in word}
    return {
        "name": name,
        "text": text,
        "direction": direction(text),
        "tokens": {
            "text": [token.text for token in tokens],
            "start": [token.start for token in tokens],
            "end": [token.end for token in tokens],
            "special": [n for n, token in enumerate(tokens) if token.special],
            "sinks": sorted(sinks),
            "word": [numbers.get(n) for n in range(len(tokens))],
        },
    }
