"""Report what `regard embed` read, stored and left out."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from regard.corpus.embed_texts import EmbedReport, embed
from regard.corpus.settings import Settings, Where
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import Cell, Column, Panel, Table
from regard.display.sentences import Template, sentences
from regard.explain.wording import listed
from regard.shown import Row

MOST = 5  # maximum number of rejected documents listed
MOST_WORDS = 8  # maximum number of listed words that have no row
# Text that the model did not read as written, by its kind in spans.parquet.
KINDS = {
    "unknown": "not in the vocabulary, read as the unknown token",
    "dropped": "dropped by the tokenizer, no embedding",
    "special": "read as a special token, no embedding",
    "long": "word longer than the overlap of two windows, no embedding",
}
TABLE: list[list[Template]] = [
    [("{store} has {rows} embeddings, from {tokens} tokens in {documents} {noun}.", None)],
    [
        ("Everything was embedded already.", lambda n: not n["built"]),
        ("Embedding took {seconds:,.0f} s ({rate:,.0f} tokens per second, including loading the model).", None),
    ],
    [("{missing}", None)],
]


@dataclass(frozen=True, eq=False, repr=False)
class Embedded(Answer):
    """The result of `regard embed`: counts and left-out inputs. missing: the sentence of `missing_words`."""

    format: ClassVar[str] = "regard embed"

    report: EmbedReport
    missing: str = ""

    def title(self) -> str:
        """Return the title, with the folder of the embedding index."""
        return f"What is in {self.report.store}"

    def findings(self) -> list[str]:
        """Report the number of embeddings, the speed, and the requested words without an embedding."""
        report, counts = self.report, self.report.counts
        numbers: dict[str, object] = {name: counts.get(name, 0) for name in ("documents", "tokens", "rows")}
        numbers |= {
            "store": str(report.store), "noun": "document" if numbers["documents"] == 1 else "documents",
            "built": report.built, "seconds": report.seconds,
            "rate": report.new_tokens / max(report.seconds, 1e-9), "missing": self.missing or None,
        }  # fmt: skip
        return sentences(TABLE, numbers)

    def exactness(self) -> list[str]:
        """Return the notes on missing documents and skipped links."""
        return list(self.report.notes)

    def rows(self) -> list[Row]:
        """Return a row per rejected document: its source, line and reason."""
        return [{"source": entry.source, "line": entry.line, "reason": entry.reason} for entry in self.report.rejected]

    def panels(self) -> list[Panel]:
        """Return tables of the first rejected documents, of text not read as written, and of all counts."""
        rejected, counts = self.report.rejected, self.report.counts
        rows = [[f"{entry.source}:{entry.line}".removesuffix(":None"), entry.reason] for entry in rejected[:MOST]]
        quarantine = Table(
            name="Quarantine", title=f"{len(rejected):,} could not be read (quarantine.parquet)",
            note=f"… and {len(rejected) - MOST:,} more" if len(rejected) > MOST else "",
            columns=[Column("source"), Column("reason")], rows=rows, screen=True,
        )  # fmt: skip
        unread: list[list[Cell]] = [[text, counts[kind]] for kind, text in KINDS.items() if counts.get(kind)]
        if (cuts := counts.get("parts", 0) - counts.get("documents", 0)) > 0:
            unread.append(["text cut into parts without attention between them (texts.parquet)", cuts])
        spans = Table(
            name="Not read as written", title="Not read as written (spans.parquet)", rows=unread, screen=True,
            columns=[Column("what"), Column("count", 0)],
        )  # fmt: skip
        count_rows: list[list[Cell]] = [[name, count] for name, count in counts.items()]
        table = Table(name="Counts", title="Counts", columns=[Column("what"), Column("count", 0)], rows=count_rows)
        return [*[quarantine] * bool(rejected), *[spans] * bool(unread), table]

    def data(self) -> dict[str, object]:
        """Return the counts, the speed and the rejected documents for JSON."""
        report = self.report
        return {
            "store": str(report.store), "counts": report.counts, "shards_built": report.built,
            "seconds": report.seconds,
            "tokens_per_second": report.new_tokens / report.seconds if report.new_tokens else None,
            "quarantined": self.rows(), "notes": [*report.notes, *([self.missing] if self.missing else [])],
        }  # fmt: skip


def embedded(paths: Sequence[str], out: Path, *, settings: Settings, **options: Any) -> Embedded:
    """Embed texts with the options of `embed`, and name the requested words that don't occur."""
    return Embedded(embed(paths, out, settings=settings, **options), missing_words(out, settings.where))


def missing_words(store: str | os.PathLike[str], where: Where | None) -> str:
    """Return a sentence about the words of `where` that have no row in the index, or an empty string."""
    if where is None:
        return ""
    with StoreTables(os.fspath(store)) as tables:
        stored = tables.distinct(where.field)
    missing = [value for value in where.values if value not in stored]
    if not missing:
        return ""
    words = listed([repr(value) for value in missing[:MOST_WORDS]])
    more = f" and {len(missing) - MOST_WORDS:,} more" if len(missing) > MOST_WORDS else ""
    note = " The embedding index is empty." if not stored else ""
    return f"`--where`: the texts have no {where.field} {words}{more}.{note}"
