"""Compare a word's static vector (word2vec, GloVe, a model's learned table) with those of reference words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.vectors.movement import FLAT
from regard.explain.vectors.planes import along, comparisons, plane, plane_axes_turned
from regard.explain.vectors.similarity import cosine, unit
from regard.trace.trace import Trace
from regard.trace.word_rows import vector


@dataclass(frozen=True)
class StaticWord:
    """A word's static vector: its cosine to the followed word's, its place on the plane; None where it has none.

    On the plane every vector has length 1, as a cosine sees it.
    """

    word: str
    cosine: float | None
    place: tuple[float, float] | None


@dataclass(frozen=True)
class Static:
    """The followed word and the reference words in one table of static vectors, of some width, from a source.

    The first of words is the followed one. share: the part of the variance that each axis of the plane keeps.
    """

    source: str
    width: int
    words: list[StaticWord]
    share: tuple[float, float]


def static_words(
    vectors: Mapping[str, Float[Tensor, " W"]], word: str, references: Sequence[str], source: str
) -> Static:
    """Compare words' static vectors; a word without one has None in the place of its numbers.

    The plane is turned, as that of `movement` is, until the nearer to the followed word has the larger cosine to it,
    where a plane can have that.

    vectors: of the followed word, and of all others that have one. source: names the vectors' file.
    """
    known = [each for each in (word, *references) if each in vectors]
    rows = torch.stack([vectors[each] for each in known]).double()
    points = unit(rows)
    flat = plane(points)
    if flat.share[1] > FLAT:
        order = comparisons(points, [[(0, n) for n in range(1, len(known))]])
        flat = along(points, plane_axes_turned(points, flat.axes, order))
    places = dict(zip(known, flat.place(points).tolist(), strict=True))
    words = [
        StaticWord(each, cosine(rows[0], vectors[each].double()), (places[each][0], places[each][1]))
        if each in places
        else StaticWord(each, None, None)
        for each in (word, *references)
    ]
    return Static(source, rows.shape[1], words, flat.share)


def learned_words(word: str, trace: Trace, references: Sequence[Trace]) -> dict[str, Tensor]:
    """Take words' vectors from a model's learned token embeddings: of a word of several tokens, their mean."""
    if trace.token_embeddings is None:
        raise RegardError(f"--static model: no table of token embeddings was found in {trace.status.model}")
    found = {word: vector(trace.token_embeddings, trace.word(word)[0])}
    for reference in references:
        if reference.token_embeddings is not None:
            own = [n for n, token in enumerate(reference.tokens) if not token.special]
            found.setdefault(reference.text, reference.token_embeddings[own].mean(0))
    return found
