"""Say in sentences which lines of a concordance these are, in which order, and what is near where lines are near."""

from typing import TYPE_CHECKING

from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.find.answer import Concordance

ORDERS = {
    "source": "in the order of the texts",
    "left": "by the words before it",
    "right": "by the words behind it",
    "meaning": "along the first principal axis of its embeddings, the direction in which they differ most",
}
NEAR = (
    "The first lines have the largest cosines. Contextual embeddings carry what a word means, and also what its "
    "sentence is about and how it is built: not all of the first lines need to have the meaning that was asked for."
)


def of_lines(found: "Concordance") -> list[str]:
    """Say how often the word occurs and which of its lines were found, in what order."""
    shown, order = len(found.lines), ORDERS[found.sort]
    if found.like is not None and found.sort == "meaning":
        order = (
            f"from the largest to the smallest cosine with the embedding (layer {found.layer}) of {quoted(found.word)} "
            f"in “{found.like}”"
        )
    which = "they stand here" if shown == found.total else f"here are the first {shown:,},"
    if found.everywhere:
        said = f"The store has {found.total:,} words; {which} {order}."
    else:
        times = "once" if found.total == 1 else f"{found.total:,} times"
        here = "here it is" if found.total == 1 else f"{which} {order}"
        said = f"{quoted(found.word)} occurs {times}; {here}."
    return [said, NEAR] if found.like is not None else [said]
