"""State in a line why a picture shows a layer and head, and which weight is the largest of all that it shows.

Chosen is what the sentences name: of a word the weight that is most beyond the expected
(`regard.explain.weights.specific_weights`), which the largest need not be. So the largest stands beside it.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from regard.explain.texts.highlights import Link
from regard.explain.weights.specific_weights import SpecificWeight
from regard.explain.wording import number, place_in_brackets, quoted
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike

LONGEST = 16  # characters of a token's name


def word_choice(
    best: SpecificWeight,
    rows: Float[Tensor, "H S"],
    tokens: Sequence[Token],
    *,
    layer: int | None = None,
    head: int | None = None,
    held: bool = True,
) -> str:
    """Say what a word gives in the head that is drawn, what is expected there, and the largest weight that it gives.

    Args:
        best: the weight that chose layer and head.
        rows: what each head of the layer gives from the word.
        layer, head: those that were asked for, all others aside.
        held: the trace has every layer of the model.
    """
    given = f"{_word_in_drawn_title(best.queries, tokens)} gives {_token_name(tokens, best.key)} {number(best.weight)}"
    expected = f"(others at that distance {number(best.by_distance)}, to that token {number(best.by_key)})"
    others = "all heads" if layer is None else f"layer {layer}'s heads"
    of = f", of {others}" if head is None else f", of head {head} in all layers" if layer is None else ""
    of += "" if held or layer is not None else " that are held" if head is not None else " of the layers held"
    shown = rows if head is None else rows[head : head + 1]
    place, key = divmod(int(shown.argmax()), shown.shape[1])
    at = "itself" if key in best.queries and len(best.queries) == 1 else _token_name(tokens, key)
    largest = place if head is None else head
    if (largest, key) == (best.head, best.key):
        also = "which is its largest weight here"
    else:
        by = f", head {largest}" if head is None else ""
        also = f"its largest weight here: {at} {number(float(shown[place, key]))}{by}"
    asked = layer is not None and head is not None
    return f"{'' if asked else 'chosen: '}{given} {expected}, of other words most beyond these{of}; {also}"


def strongest_links(own: Link | None, every: Sequence[Link], tokens: Sequence[Token], *, head: bool = False) -> str:
    """Say which link across words is the strongest of a head, and which of all; "" where there is none.

    Args:
        own: the strongest of the head that is drawn.
        every: the strongest of all heads, the largest first.
        head: of the one that was asked for, in every layer.
    """
    if own is None:
        return ""
    says, whole = f"framed: {_link(own, tokens)}, its strongest link of words that are no neighbours", "all heads"
    if head:
        whole = f"head {own.head} in all layers"
    if not every or every[0].weight <= own.weight:
        return f"{says}, and that of {whole}"
    first = every[0]
    return f"{says}; of {whole} {_link(first, tokens)}, layer {first.layer}{'' if head else f', head {first.head}'}"


def _link(link: Link, tokens: Sequence[Token]) -> str:
    return f"{_token_name(tokens, link.query)} looks at {_token_name(tokens, link.key)} {number(link.weight)}"


def _token_name(tokens: Sequence[Token], number: int) -> str:
    """A token in a title; with its number where words or numbers of the text are called the same."""
    text = tokens[number].text.strip()
    name = text if tokens[number].special else quoted(_short_text_in_title(text))
    twice = wordlike(text) and sum(token.text.strip() == text for token in tokens) > 1
    return name + place_in_brackets(tokens, number, twice)


def _word_in_drawn_title(queries: Sequence[int], tokens: Sequence[Token]) -> str:
    return quoted(_short_text_in_title(spelling(tokens, queries)))


def _short_text_in_title(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
