"""Hold what `regard embed` read and wrote: counts, and nothing left out in silence."""

import os
from dataclasses import dataclass
from typing import ClassVar

from regard.corpus.embed_texts import EmbedReport
from regard.corpus.settings import Where
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import Cell, Column, Panel, Table
from regard.explain.frames import Row
from regard.explain.wording import listed

MOST = 5  # rejected documents that are named
MOST_WORDS = 8  # words without a row that are named
# What the model did not read as it stands, by its kind in spans.parquet.
KINDS = {
    "unknown": "places that the tokenizer does not know: read as its token for unknown text",
    "dropped": "stretches that the tokenizer drops: no vector",
    "special": "stretches that are read as special tokens: no vector",
    "long": "words longer than two windows share: no vector",
}


@dataclass(frozen=True, eq=False, repr=False)
class Embedded(Answer):
    """What a store holds, what was left out and why. missing: which words have no row, as `missing_words` says it."""

    format: ClassVar[str] = "regard embed"

    report: EmbedReport
    missing: str = ""

    def title(self) -> str:
        """Of which store."""
        return f"What is in {self.report.store}"

    def findings(self) -> list[str]:
        """Say how much there is, how fast it was read, and what was not read as it stands."""
        report, counts = self.report, self.report.counts
        documents, tokens, rows, parts = (counts.get(name, 0) for name in ("documents", "tokens", "rows", "parts"))
        many = f"{documents:,} document{'s' * (documents != 1)}, {tokens:,} tokens, {rows:,} rows in {report.store}"
        read = "everything was there already: nothing was read with the model"
        if report.built:
            rate = report.new_tokens / max(report.seconds, 1e-9)
            read = f"read in {report.seconds:,.0f} s, {rate:,.0f} tokens a second with the model's loading"
        times = f"{parts - documents:,} times a document was cut into parts"
        cut = f"{times}: attention does not reach across (texts.parquet)"
        unread = [f"{counts[kind]:,} {what} (spans.parquet)" for kind, what in KINDS.items() if counts.get(kind)]
        return [many, *[self.missing] * bool(self.missing), read, *[cut] * (parts > documents), *report.notes, *unread]

    def rows(self) -> list[Row]:
        """One row a document that could not be read: its source, line and the reason."""
        return [{"source": each.source, "line": each.line, "reason": each.reason} for each in self.report.rejected]

    def panels(self) -> list[Panel]:
        """The first documents that could not be read, and all counts."""
        rejected = self.report.rejected
        counts: list[list[Cell]] = [[name, count] for name, count in self.report.counts.items()]
        named = [[f"{each.source}:{each.line}".removesuffix(":None"), each.reason] for each in rejected[:MOST]]
        more = f"… and {len(rejected) - MOST:,} more" if len(rejected) > MOST else ""
        quarantine = Table(
            name="Quarantine", title=f"{len(rejected):,} could not be read (quarantine.parquet)", note=more,
            columns=[Column("source"), Column("reason")], rows=named, screen=True,
        )  # fmt: skip
        columns = [Column("what"), Column("count", 0)]
        return [*[quarantine] * bool(rejected), Table(name="Counts", title="Counts", columns=columns, rows=counts)]

    def data(self) -> dict[str, object]:
        """The counts, how fast it was read, and what could not be read."""
        report = self.report
        return {
            "store": str(report.store), "counts": report.counts, "shards_built": report.built,
            "seconds": report.seconds,
            "tokens_per_second": report.new_tokens / report.seconds if report.new_tokens else None,
            "closeness": report.closeness,
            "quarantined": self.rows(), "notes": [*report.notes, *([self.missing] if self.missing else [])],
        }  # fmt: skip


def missing_words(store: str | os.PathLike[str], where: Where | None) -> str:
    """Name the words that a store was to keep and of which it has no row; empty where each has one."""
    if where is None:
        return ""
    with StoreTables(os.fspath(store)) as tables:
        found = tables.distinct(where.field)
    missing = [value for value in where.values if value not in found]
    if not missing:
        return ""
    named = listed([repr(each) for each in missing[:MOST_WORDS]])
    more = f" and {len(missing) - MOST_WORDS:,} more" if len(missing) > MOST_WORDS else ""
    rest = ": the store has no rows" if not found else ""
    return f"--where: no {where.field} {named}{more} in the texts{rest}"
