"""Define the result of `regard translate`: a translation, and the source words that its words attend to."""

from dataclasses import asdict, dataclass
from typing import Any

from regard.display.panels import Cell, Column, Panel, Table
from regard.display.sentences import MAX_SENTENCES
from regard.errors import RegardError
from regard.explain.texts.summary import Summary
from regard.models.source import TracedTexts
from regard.questions.see.alignment import TEXTS, alignment_sentences, alignment_tables
from regard.questions.see.answer import Seen, seen
from regard.shown import Row
from regard.text.quoting import short as shortened

LETTERS = {1: 300, 2: 80}  # characters of a text or target on the first screen, by number of texts


@dataclass(frozen=True, eq=False, repr=False)
class Translation(Seen):
    """The result of `regard translate`: a `Seen` of texts and targets with their alignment."""

    def findings(self) -> list[str]:
        """Return sentences on the source words that target words attend to."""
        return alignment_sentences(self.summary)[:MAX_SENTENCES]

    def rows(self) -> list[Row]:
        """Return one row per target token and source token that it attends to, as it is written and as it is read.

        Rows follow the target's order. Each target token's largest weights come first.
        """
        assert self.summary.target is not None
        rows: list[Row] = []
        for alignment in self.summary.target.alignments:
            for aligned in alignment.tokens:
                token: Row = {"text": self.summary.labels[alignment.text], "token": aligned.token}
                token |= {"target": aligned.text}
                for name, row in (("written", aligned.written), ("read", aligned.read)):
                    head = token | {"as_it_is": name, "layer": row.layer if row else None}
                    rows += [head | {f"from_{key}": value for key, value in asdict(share).items()}
                             for share in (row.top if row else ())]  # fmt: skip
        return rows

    def panels(self) -> list[Panel]:
        """Return the tables of texts with targets, and of their alignments."""
        texts = [_texts_table(self.summary, short=short) for short in (True, False)]
        return [*texts, *alignment_tables(self.summary)]

    def opening(self) -> dict[str, str | int | None]:
        """Return the view at which the page opens, the alignment, with the layer and head."""
        return {"view": "alignment", "layer": self.layer, "head": self.head}


def translated(reading: TracedTexts, **options: Any) -> Seen:
    """Return the `Translation` of an encoder-decoder's traces. options: layer, head and top, as for `seen`."""
    if not reading.generated:
        raise RegardError(f"translate: {reading.model.name} is not an encoder-decoder: it reads a single text")
    return seen(reading.traces, kind=Translation, names=reading.names, generated=reading.generated, **options)


def _texts_table(summary: Summary, *, short: bool) -> Table:
    """Return a table of each text with its target. short: only the first texts, cut for a screen."""
    assert summary.target is not None
    rows: list[list[Cell]] = list(map(list, zip(summary.texts, summary.target.summary.texts, strict=True)))
    note = ""
    if short:
        limit, more = LETTERS[min(len(rows), TEXTS)], len(rows) - TEXTS
        rows = [[shortened(str(text), limit) for text in row] for row in rows[:TEXTS]]
        note = f"{more} more text{'s' * (more > 1)} not shown" if more > 0 else ""
    columns = [Column("text"), Column("target")]
    return Table(name="Texts", title="", columns=columns, rows=rows, note=note, screen=short, brief=short)
