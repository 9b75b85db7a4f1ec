"""A concordance as a panel: the word in the middle of its context, with where each line is from."""

from typing import TYPE_CHECKING

from regard.corpus.asking.occurrences import Line
from regard.display.panels import Cell, Column, InContext, Panel, Table

if TYPE_CHECKING:
    from regard.questions.find.answer import Concordance


def of_lines(found: "Concordance") -> list[Panel]:
    """Show every line with its word marked, and where it is from."""
    alike = found.like is not None
    columns = [
        Column("in context"), Column("document"), Column("from", 0), *([Column("similarity", 3)] if alike else []),
    ]  # fmt: skip
    rows = [[*in_context(line), *([line.similarity] if alike else [])] for line in found.lines]
    note = "from: its first character in the document"
    return [Table(name="Occurrences", title="Occurrences", note=note, columns=columns, rows=rows, screen=True)]


def in_context(line: Line) -> list[Cell]:
    """Return an occurrence in its context, its document, and its first character there."""
    return [InContext(line.left, line.form, line.right), line.document, line.start]
