"""Hold occurrences of a word in a store: where they stand, their vectors, and the text around them."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from jaxtyping import Float, Int

from regard.corpus.shard_reader import RowColumns
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError

COLUMNS = ("word", "form", "document", "part", "start", "end")
CONTEXT = 60  # characters on either side
MOST = 20_000  # occurrences of a page, each an element: in Chromium, on one busy core, as many took 9 s to open
BLANKS = re.compile(r"\s+")
PARTS = ("start", "text", "source", "line", "metadata")
FIELDS = ("word", "lemma")  # what a word may be looked up by


@dataclass(frozen=True)
class Line:
    """One occurrence in its context, a line of a concordance.

    left, right: what stands before and after it in its text, as many characters as were asked for. start, end: its
    characters in the whole document. source, line: the file it was read from, and where in it. metadata: of its
    document. similarity: the cosine with what was asked for. shard, row: where the store keeps it.
    """

    left: str
    form: str
    right: str
    word: str
    document: str
    start: int
    end: int
    source: str
    line: int | None
    metadata: dict[str, str]
    shard: str
    row: int
    similarity: float | None = None


@dataclass(frozen=True, eq=False)
class Occurrences:
    """Occurrences as columns, in the order of the store: shards as in the manifest, then parts, then characters.

    run: the words of each, where it is several that stand together; row is then that of one of them.
    """

    tables: StoreTables
    shard: tuple[str, ...]
    row: Int[np.ndarray, " n"]
    part: Int[np.ndarray, " n"]
    start: Int[np.ndarray, " n"]
    end: Int[np.ndarray, " n"]
    word: tuple[str, ...]
    form: tuple[str, ...]
    document: tuple[str, ...]
    run: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.row)

    def take(self, chosen: Sequence[int] | Int[np.ndarray, " m"]) -> "Occurrences":
        """Return some of them, by their numbers, in that order."""
        numbers = np.asarray(chosen, dtype=np.int64)
        shard, word, form, document = (
            tuple(column[n] for n in numbers) for column in (self.shard, self.word, self.form, self.document)
        )
        row, part, start, end = (column[numbers] for column in (self.row, self.part, self.start, self.end))
        return Occurrences(self.tables, shard, row, part, start, end, word, form, document, self.run)

    def vectors(self, layer: int | None = None) -> Float[np.ndarray, "n M"]:
        """Read their embeddings in float32, from one layer; None for the last that is kept."""
        if self.run:
            words = " or ".join(map(repr, dict.fromkeys(self.run)))
            raise RegardError(
                f"{self.word[0]!r} is {len(self.run)} words of the embedding index, with an embedding each and none "
                f"together: ask for {words}"
            )
        found = np.empty((0, self.tables.manifest.model.width), np.float32)
        shards = np.array(self.shard)
        for shard in dict.fromkeys(self.shard):
            own = np.flatnonzero(shards == shard)
            read = self.tables.vectors(shard, self.row[own], layer)  # which checks the manifest's width
            if not len(found):
                found = np.empty((len(self), read.shape[1]), np.float32)
            found[own] = read
        return found

    def texts(self) -> "dict[tuple[str, int], DocumentPart]":
        """Read the parts of documents that they stand in, by shard and part."""
        wanted: dict[str, set[int]] = {}
        for shard, part in zip(self.shard, self.part.tolist(), strict=True):
            wanted.setdefault(shard, set()).add(part)
        there = self.tables.rows_at({shard: sorted(parts) for shard, parts in wanted.items()}, PARTS, "texts")
        cells = zip(*(there.list(name) for name in PARTS), strict=True)
        found = {
            (shard, int(row)): DocumentPart(start, text, source, line, dict(metadata))
            for shard, row, (start, text, source, line, metadata) in zip(there.shard, there.row, cells, strict=True)
        }
        for shard, part in zip(self.shard, self.part.tolist(), strict=True):
            if (shard, part) not in found:
                raise RegardError(f"shard {shard}: a row names part {part}, which texts.parquet does not have")
        return found

    def lines(self, context: int, similarity: Sequence[float] | None = None) -> list[Line]:
        """Put each into its context of so many characters on either side; runs of blanks and line breaks become one."""
        if context < 0:
            raise RegardError(f"context: given {context}, needs 0 or more characters")
        texts, lines = self.texts(), []
        for n, (shard, part) in enumerate(zip(self.shard, self.part.tolist(), strict=True)):
            there = texts[shard, part]
            start, end = int(self.start[n]), int(self.end[n])
            first, last = start - there.start, end - there.start
            around = there.text[max(0, first - context) : first], there.text[last : last + context]
            left, right = (BLANKS.sub(" ", each) for each in around)  # one line; what stands at the ends stays
            lines.append(
                Line(left, self.form[n], right, self.word[n], self.document[n], start, end,
                     there.source, there.line, there.metadata, shard, int(self.row[n]),
                     None if similarity is None else float(similarity[n]))
            )  # fmt: skip
        return lines


@dataclass(frozen=True)
class DocumentPart:
    """A part of a document: its text, from character start of the document on, and where it was read."""

    start: int
    text: str
    source: str
    line: int | None
    metadata: dict[str, str]


def at_rows(tables: StoreTables, shards: Sequence[str], rows: Sequence[int]) -> Occurrences:
    """Find the occurrences that the store keeps in some rows of its shards, in the order given."""
    if len(shards) != len(rows):
        raise RegardError(f"rows: given {len(rows)} rows of {len(shards)} shards, needs one shard for each")
    wanted: dict[str, list[int]] = {}
    for shard, row in zip(shards, rows, strict=True):
        wanted.setdefault(shard, []).append(int(row))
    found = in_store_order(tables, tables.rows_at(wanted, COLUMNS))
    places = {key: n for n, key in enumerate(zip(found.shard, found.row.tolist(), strict=True))}
    for key in zip(shards, rows, strict=True):
        if key not in places:
            raise RegardError(f"shard {key[0]}: the embedding index has no row {key[1]} there")
    return found.take([places[key] for key in zip(shards, rows, strict=True)])


def in_store_order(tables: StoreTables, rows: RowColumns) -> Occurrences:
    """Make occurrences of rows with `COLUMNS`, sorted as they stand in the texts."""
    numbers = {name: n for n, name in enumerate(tables.shards)}
    shard = np.array([numbers[name] for name in rows.shard], dtype=np.int64)
    part, start, end = (rows.numbers(name) for name in ("part", "start", "end"))
    word, form, document = (tuple(rows.list(name)) for name in ("word", "form", "document"))
    found = Occurrences(tables, tuple(rows.shard), rows.row, part, start, end, word, form, document)
    return found.take(np.lexsort((start, part, shard)))


def flat_rows(lines: Sequence[Line]) -> list[dict[str, str | int | float | None]]:
    """Turn lines into rows of one table, in which each name of the metadata is a column."""
    names = sorted({name for line in lines for name in line.metadata})
    rows = []
    for line in lines:
        row = {name: value for name, value in asdict(line).items() if name != "metadata"}
        rows.append(row | {f"metadata.{name}": line.metadata.get(name) for name in names})
    return rows
