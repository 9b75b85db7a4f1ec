"""Say in sentences which lines of a concordance these are, in which order, and what is near where lines are near."""

from regard.corpus.asking.find import Concordance
from regard.text.quoting import quoted

ORDERS = {
    "source": "in the order of the texts",
    "left": "by the words before it",
    "right": "by the words behind it",
    "meaning": "along the first principal axis of its embeddings, the direction in which they differ most",
}
NEAR = (
    "Near is what has a large cosine: contextual embeddings carry what a word means, and also what its sentence is "
    "about and how it is built, so that not all of the first lines need to have the meaning that was asked for."
)


def concordance_sentences(found: Concordance, most: int | None = None) -> list[str]:
    """Say how often the word occurs and which lines are shown, in what order. most: of its lines the first so many."""
    shown = len(found.lines) if most is None else min(most, len(found.lines))
    order = ORDERS[found.sort]
    if found.like is not None and found.sort == "meaning":
        order = (
            f"from the largest to the smallest cosine with the embedding (layer {found.layer}) of {quoted(found.word)} "
            f"in “{found.like}”"
        )
    which = "all" if shown == found.total else f"the first {shown:,}"
    if found.everywhere:
        said = f"The store has {found.total:,} words; here are {which}, {order}."
    else:
        times = "once" if found.total == 1 else f"{found.total:,} times"
        here = "here it is" if found.total == 1 else f"here are {which}, {order}"
        said = f"{quoted(found.word)} occurs {times}; {here}."
    return [said, NEAR] if found.like is not None else [said]
