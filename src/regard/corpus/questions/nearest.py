"""Find the texts of a store whose sentence embeddings are nearest to that of a text: `regard embed --unit texts`.

Reimers & Gurevych 2019, "Sentence-BERT": texts are compared by the cosine of one vector each.
"""

import textwrap
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from regard.corpus.asking.occurrences import Line, flat_rows
from regard.corpus.asking.vectors import find_nearest_rows
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import Column, Panel, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.wording import listed
from regard.text.tokens import check_text

NEAREST = 100  # texts, where no other number is given
BEGINNING = 160  # characters of a text that a table shows
TABLE: list[list[Template]] = [
    [
        ("The only text in the embedding index has cosine {cosine} with your text.", lambda n: n["total"] == 1),
        ("The nearest text is {document} with cosine {cosine}. The mean cosine of all {total} texts is {mean}.", None),
    ],
    [
        ("The table has the {shown} nearest texts, down to cosine {smallest}. Pass `--top` (`top=`) for more.",
         lambda n: n["shown"] < n["total"]),
    ],
]  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class NearestTexts(Answer):
    """Texts of a store, the most alike first. like: what they are compared with.

    total, mean: how many texts the store has, and the mean of the cosines of all of them. prompt: what `like` began
    with; prompts: the names of those that the model's folder has.
    """

    format: ClassVar[str] = "regard find texts"

    like: str
    lines: tuple[Line, ...]
    total: int
    mean: float
    prompt: str
    prompts: tuple[str, ...]
    notes: tuple[str, ...]

    def title(self) -> str:
        """Say what was looked for."""
        return f"Texts nearest to “{_beginning(self.like)}”"

    def findings(self) -> list[str]:
        """Report the cosine of the nearest text and the mean of all, and what the lines leave out."""
        first, last = self.lines[0], self.lines[-1]
        numbers = {
            "total": self.total, "mean": self.mean, "shown": len(self.lines), "document": first.document,
            "cosine": first.similarity, "smallest": last.similarity,
        }  # fmt: skip
        return sentences(TABLE, numbers)

    def rows(self) -> list[Row]:
        """List the texts, whole, as rows of one table: metadata as columns of their own, metadata.NAME."""
        return [_line_of_text(row) for row in flat_rows(self.lines)]

    def data(self) -> dict[str, object]:
        """Give all that is known of the texts, and what was asked."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("lines", "about")}
        return own | {"lines": [_line_of_text(asdict(line)) for line in self.lines]}

    def panels(self) -> list[Panel]:
        """Show how each text begins, where it is from, and how alike it is."""
        columns = [Column("cosine", 2), Column("document"), Column("from", 0), Column("text")]  # the longest last
        rows = [[line.similarity, line.document, line.start, _beginning(line.form)] for line in self.lines]
        note = "from: position of the first character in the document."
        return [Table(name="Texts", title=self.title(), note=note, columns=columns, rows=rows, screen=True)]

    def exactness(self) -> list[str]:
        """List the notes on the index, and the prompt before the text."""
        line = f"Your text was embedded after the prompt {self.prompt!r}." if self.prompt else ""
        if not line and self.prompts:
            line = f"Your text was embedded without a prompt. The model has {listed([*map(repr, self.prompts)])}."
        return [*self.notes, *[line] * bool(line)]


def find_texts(tables: StoreTables, text: str, *, prompt: str | None = None, top: int | None = None) -> NearestTexts:
    """Find the texts that are nearest to one."""
    from regard.corpus.settings import Settings
    from regard.corpus.writing.cut_windows import settings_for_texts

    settings = tables.manifest.settings
    if tables.manifest.unit != "texts":
        raise RegardError(
            f"embedding index {str(tables.path)!r} has {tables.manifest.unit}: make one of texts with "
            "`regard embed --unit texts`"
        )
    if top is not None and top < 1:
        raise RegardError(f"top: given {top}, needs 1 or more")
    check_text(text)
    model = tables.model
    asked = settings_for_texts(Settings(unit="texts", statistics=False, prompt=prompt), model)
    if asked.pooling != settings.get("pooling"):
        raise RegardError(
            f"embedding index {str(tables.path)!r}: its texts were pooled by {settings.get('pooling')}, "
            f"{model.name} is by {asked.pooling}"
        )
    vector = model.embedding(text, prompt=asked.prompt)
    near = find_nearest_rows(tables, vector.detach().float().cpu().numpy(), top or NEAREST)
    order = np.argsort(-near.similarity, kind="stable")
    lines = near.found.take(order).lines(0, near.similarity[order].tolist())
    return NearestTexts(
        text, tuple(lines), near.total, near.mean, asked.prompt or "", tuple(model.pooling.prompts), tables.notes
    )


def _line_of_text(line: dict[str, Any]) -> dict[str, Any]:
    """A line of a concordance as one of texts: it has no word, and nothing beside it."""
    return {"text": line["form"]} | {
        name: each for name, each in line.items() if name not in ("left", "right", "word", "form")
    }


def _beginning(text: str) -> str:
    """How a text begins, on one line."""
    return textwrap.shorten(text, BEGINNING, placeholder=" …")
