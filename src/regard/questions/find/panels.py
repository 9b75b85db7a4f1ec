"""A concordance as a panel: the word in the middle of its context, with where each line is from."""

from typing import TYPE_CHECKING

from regard.display.contexts import in_context
from regard.display.panels import Column, Panel, Table

if TYPE_CHECKING:
    from regard.questions.find.answer import Concordance


def of_lines(found: "Concordance") -> list[Panel]:
    """Show every line with its word marked, and where it is from."""
    alike = found.like is not None
    columns = [
        Column("in context"), Column("document"), Column("from", 0), *([Column("similarity", 2)] if alike else []),
    ]  # fmt: skip
    rows = [[*in_context(line), *([line.similarity] if alike else [])] for line in found.lines]
    note = "from: its first character in the document"
    return [Table(name="Occurrences", title="Occurrences", note=note, columns=columns, rows=rows, screen=True)]
