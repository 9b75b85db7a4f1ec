"""A word's sharpest link: the largest weight that any one head gives from it to a token of another word.

The neighbouring words are left out because many heads look at the token before or after, whatever it is: such a head's
weight of 1 says nothing of the word. So is the same word elsewhere in the text: many heads look at what is repeated.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from regard.text.tokens import Token
from regard.text.word_pieces import runs, spelling, wordlike, words

UNKNOWN = ("[UNK]", "<unk>")  # how vocabularies spell what they do not know


@dataclass(frozen=True)
class WordLink:
    """A token of another word, the weight that a word gives it in one head, and that head. weight: a part of 1."""

    layer: int
    head: int
    token: int
    text: str
    weight: float


def other_words(tokens: Sequence[Token], own: Collection[int], sinks: Collection[int] = ()) -> list[int]:
    """Number the tokens of other words than one: not its own, no sinks, not special, with a letter or a digit.

    What a tokenizer does not know is no word. own, sinks: the numbers of the word's tokens, and of those that are
    attention sinks.
    """
    return [
        number
        for number, token in enumerate(tokens)
        if not token.special and number not in own and number not in sinks
        if wordlike(token.text) and token.text.strip() not in UNKNOWN
    ]


def beyond_neighbours(tokens: Sequence[Token], own: Sequence[int], sinks: Collection[int] = ()) -> list[int]:
    """Number the tokens of words that are neither beside a word nor the same: what its links are looked for among.

    Beside it is what stands between the same blanks, and between those before and after it that have a letter or digit.
    """
    near = [run for run in runs(tokens) if any(wordlike(tokens[n].text) and not tokens[n].special for n in run)]
    at = [place for place, run in enumerate(near) if not set(run).isdisjoint(own)]
    beside = {n for place in at for run in near[max(0, place - 1) : place + 2] for n in run}
    called = spelling(tokens, own).casefold()
    same = {n for word in words(tokens) if spelling(tokens, word).casefold() == called for n in word}
    return [number for number in other_words(tokens, own, sinks) if number not in beside and number not in same]


def sharpest_link(
    rows: Mapping[int, Float[Tensor, "H S"]], tokens: Sequence[Token], own: Sequence[int], sinks: Collection[int] = ()
) -> WordLink | None:
    """Find the largest weight on a token of another word that is not beside a word.

    None where no such token gets anything; of several alike the first layer's, head's and token's.

    Args:
        rows: by layer, what the word gives each token, a row a head.
        tokens: of the keys.
        own: the word's tokens.
        sinks: numbers of tokens that are attention sinks, which are passed over.
    """
    far = beyond_neighbours(tokens, own, sinks)
    best: WordLink | None = None
    for layer, weights in rows.items() if far else ():
        largest, at = weights[:, far].nan_to_num(0.0).flatten().max(0)
        if float(largest) > (0.0 if best is None else best.weight):
            head, place = divmod(int(at), len(far))
            best = WordLink(layer, head, far[place], tokens[far[place]].text, float(largest))
    return best
