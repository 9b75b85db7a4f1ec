"""A concordance as a panel: the word in the middle of its context, with where each line is from."""

from typing import TYPE_CHECKING

from regard.display.contexts import in_context
from regard.display.panels import Column, Panel, Table
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.find.answer import Concordance

ORDERS = {
    "source": "in the order of the texts",
    "left": "sorted by the words before it",
    "right": "sorted by the words after it",
    "meaning": "sorted along the first principal axis of the embeddings",
}


def of_lines(result: "Concordance") -> list[Panel]:
    """Show every line with its word marked, and where it is from."""
    like = result.like is not None
    order = "sorted by cosine" if like and result.sort == "meaning" else ORDERS[result.sort]
    layer = f", layer {result.layer}" if like or result.sort == "meaning" else ""
    words = f"Words nearest to {quoted(result.word)}" if result.everywhere else f"Occurrences of {quoted(result.word)}"
    columns = [
        Column("in context"), Column("document"), Column("from", 0), *([Column("cosine", 2)] if like else []),
    ]  # fmt: skip
    rows = [[*in_context(line), *([line.similarity] if like else [])] for line in result.lines]
    note = "from: position of the first character in the document."
    if like:
        note = (
            f"cosine: with {quoted(result.word)} in your sentence. A similar topic or sentence also raises the cosine."
        )
    return [
        Table(name="Occurrences", title=f"{words}, {order}{layer}", note=note, columns=columns, rows=rows, screen=True)
    ]
