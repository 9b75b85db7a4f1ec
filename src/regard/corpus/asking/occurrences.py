"""Look up a word in an embedding index: its occurrences with their positions, vectors and context.

A query that isn't a single word of the index is looked up as consecutive words, such as "don't", "the bank" or 银行.
`word_spans` defines words: "don't" has two, and in scripts without spaces each character is a word. The lookup finds
the query's rarest stored word and compares the text around its occurrences with the other words.
"""

import difflib
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from regard.corpus.settings import lookup_key
from regard.corpus.shard_reader import RowColumns
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from regard.text.words import ALIKE, word_spans

COLUMNS = ("word", "form", "document", "part", "start", "end")
CONTEXT = 60  # characters on either side
MOST = 20_000  # maximum number of occurrences on a page; Chromium took 9 s to open this many on a busy core
BLANKS = re.compile(r"\s+")
PARTS = ("start", "text", "source", "line", "metadata")
FIELDS = ("word", "lemma")  # columns that can be searched


@dataclass(frozen=True)
class Line:
    """One occurrence with its context, as a line of a concordance (KWIC).

    left, right: the requested number of characters before and after it. start, end: its character positions in the
    whole document. source, line: its file and line. metadata: its document's metadata. similarity: the cosine with the
    query's vector. shard, row: its position in the index.
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
    """Occurrences as columns, sorted by shard (in the manifest's order), document part and first character.

    run: the consecutive words in each occurrence, if the query has several. `row` is then the row of one of them.
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

    def take(self, indices: Sequence[int] | Int[np.ndarray, " m"]) -> "Occurrences":
        """Return the occurrences at these indices, in the same order."""
        numbers = np.asarray(indices, dtype=np.int64)
        shard, word, form, document = (
            tuple(column[n] for n in numbers) for column in (self.shard, self.word, self.form, self.document)
        )
        row, part, start, end = (column[numbers] for column in (self.row, self.part, self.start, self.end))
        return Occurrences(self.tables, shard, row, part, start, end, word, form, document, self.run)

    def vectors(self, layer: int | None = None) -> Float[np.ndarray, "n M"]:
        """Read the occurrences' embeddings from a layer as float32. None: the last stored layer."""
        if self.run:
            words = " or ".join(map(repr, dict.fromkeys(self.run)))
            raise RegardError(
                f"{self.word[0]!r} is {len(self.run)} words of the embedding index, with an embedding each and none "
                f"together: ask for {words}"
            )
        vectors = np.empty((0, self.tables.manifest.model.width), np.float32)
        shards = np.array(self.shard)
        for shard in dict.fromkeys(self.shard):
            members = np.flatnonzero(shards == shard)
            loaded = self.tables.vectors(shard, self.row[members], layer)  # checks the manifest's width
            if not len(vectors):
                vectors = np.empty((len(self), loaded.shape[1]), np.float32)
            vectors[members] = loaded
        return vectors

    def texts(self) -> "dict[tuple[str, int], DocumentPart]":
        """Read the document parts that contain the occurrences, by shard and part number."""
        part_numbers: dict[str, set[int]] = {}
        for shard, part in zip(self.shard, self.part.tolist(), strict=True):
            part_numbers.setdefault(shard, set()).add(part)
        table = self.tables.rows_at({shard: sorted(parts) for shard, parts in part_numbers.items()}, PARTS, "texts")
        cells = zip(*(table.list(name) for name in PARTS), strict=True)
        parts_by_key = {
            (shard, int(row)): DocumentPart(start, text, source, line, dict(metadata))
            for shard, row, (start, text, source, line, metadata) in zip(table.shard, table.row, cells, strict=True)
        }
        for shard, part in zip(self.shard, self.part.tolist(), strict=True):
            if (shard, part) not in parts_by_key:
                raise RegardError(f"shard {shard}: a row names part {part}, which texts.parquet does not have")
        return parts_by_key

    def lines(self, context: int, similarity: Sequence[float] | None = None) -> list[Line]:
        """Return a line for each occurrence, with `context` characters on each side and whitespace as single spaces."""
        if context < 0:
            raise RegardError(f"context: got {context}, expected 0 or more characters")
        texts, lines = self.texts(), []
        for n, (shard, part) in enumerate(zip(self.shard, self.part.tolist(), strict=True)):
            entry = texts[shard, part]
            start, end = int(self.start[n]), int(self.end[n])
            first, last = start - entry.start, end - entry.start
            contexts = entry.text[max(0, first - context) : first], entry.text[last : last + context]
            left, right = (BLANKS.sub(" ", side) for side in contexts)  # joins lines, keeps spaces at the ends
            lines.append(
                Line(left, self.form[n], right, self.word[n], self.document[n], start, end,
                     entry.source, entry.line, entry.metadata, shard, int(self.row[n]),
                     None if similarity is None else float(similarity[n]))
            )  # fmt: skip
        return lines


@dataclass(frozen=True)
class DocumentPart:
    """A part of a document: its text, its first character's position in the document, and its file."""

    start: int
    text: str
    source: str
    line: int | None
    metadata: dict[str, str]


def occurrences_at_rows(tables: StoreTables, shards: Sequence[str], rows: Sequence[int]) -> Occurrences:
    """Return the occurrences at these rows of the index's shards, in the same order."""
    if len(shards) != len(rows):
        raise RegardError(f"rows: got {len(rows)} rows of {len(shards)} shards, expected one shard for each row")
    rows_by_shard: dict[str, list[int]] = {}
    for shard, row in zip(shards, rows, strict=True):
        rows_by_shard.setdefault(shard, []).append(int(row))
    occurrences = in_store_order(tables, tables.rows_at(rows_by_shard, COLUMNS))
    indices = {key: n for n, key in enumerate(zip(occurrences.shard, occurrences.row.tolist(), strict=True))}
    for key in zip(shards, rows, strict=True):
        if key not in indices:
            raise RegardError(f"shard {key[0]}: the embedding index has no row {key[1]} in it")
    return occurrences.take([indices[key] for key in zip(shards, rows, strict=True)])


def in_store_order(tables: StoreTables, rows: RowColumns) -> Occurrences:
    """Convert table rows with `COLUMNS` to occurrences, sorted by their position in the index."""
    numbers = {name: n for n, name in enumerate(tables.shards)}
    shard = np.array([numbers[name] for name in rows.shard], dtype=np.int64)
    part, start, end = (rows.numbers(name) for name in ("part", "start", "end"))
    word, form, document = (tuple(rows.list(name)) for name in ("word", "form", "document"))
    occurrences = Occurrences(tables, tuple(rows.shard), rows.row, part, start, end, word, form, document)
    return occurrences.take(np.lexsort((start, part, shard)))


def flat_rows(lines: Sequence[Line]) -> list[dict[str, str | int | float | None]]:
    """Convert lines to rows of one table, with a column `metadata.NAME` for each metadata name."""
    names = sorted({name for line in lines for name in line.metadata})
    rows = []
    for line in lines:
        row = {name: value for name, value in asdict(line).items() if name != "metadata"}
        rows.append(row | {f"metadata.{name}": line.metadata.get(name) for name in names})
    return rows


def look_up(tables: StoreTables, word: str, by: str = "word") -> Occurrences:
    """Return every occurrence of a word, a lemma or consecutive words, in the order of the index."""
    if by not in FIELDS:
        raise RegardError(f"by: got {by!r}, expected {' or '.join(FIELDS)}")
    query = lookup_key(word.strip())
    if not query:
        raise RegardError("word is empty: pass a word of the embedding index")
    occurrences = _occurrences_of(tables, by, query)
    if len(occurrences):
        return occurrences
    if by == "lemma":
        raise _no_occurrence_error(tables, word, by, _why_not_stored(tables, by, query))
    spans = list(word_spans(query))
    if not spans:
        raise _no_occurrence_error(tables, word, by, ": it has no letter or digit. Each word of an index has one")
    words = [lookup_key(query[start:end]) for start, end in spans]
    counts = {text: n for text in dict.fromkeys(words) if (n := len(tables.rows_with("word", text, ())))}
    if counts and words != [query]:
        anchor = min(counts, key=lambda text: (counts[text], text))
        occurrences = _runs_around_anchor(_occurrences_of(tables, by, anchor), query, spans, words.index(anchor))
    if not len(occurrences):
        raise _no_occurrence_error(tables, word, by, _why_no_run(tables, query, words, counts))
    return occurrences


def _occurrences_of(tables: StoreTables, by: str, query: str) -> Occurrences:
    """Return the occurrences of one word or lemma, sorted by position."""
    return in_store_order(tables, tables.rows_with(by, query, COLUMNS))


def _runs_around_anchor(anchors: Occurrences, query: str, spans: list[tuple[int, int]], index: int) -> Occurrences:
    """Return the occurrences of consecutive words. anchors: those of one of the words; index: its index in `spans`."""
    gaps = [_comparable_gap(query[a:b]) for (_, a), (b, _) in pairwise(spans)]
    before, after = _comparable_gap(query[: spans[0][0]]), _comparable_gap(query[spans[-1][1] :])
    words = tuple(lookup_key(query[start:end]) for start, end in spans)
    texts, spans_of_part = anchors.texts(), {}
    numbers, edges, forms = [], [], []
    for n, key in enumerate(zip(anchors.shard, anchors.part.tolist(), strict=True)):
        part = texts[key]
        if key not in spans_of_part:
            spans_of_part[key] = list(word_spans(part.text))
        words_of_part = spans_of_part[key]
        first = bisect_left(words_of_part, (int(anchors.start[n]) - part.start, 0)) - index
        run = words_of_part[first : first + len(words)] if first >= 0 else []
        if len(run) == len(words) and _matches_run(part, run, words, gaps, before, after):
            numbers.append(n)
            edges.append((run[0][0] + part.start, run[-1][1] + part.start))
            forms.append(BLANKS.sub(" ", part.text[run[0][0] : run[-1][1]]))
    runs = anchors.take(numbers)
    if len(words) == 1:  # a word with punctuation next to it
        return runs
    start, end = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return Occurrences(
        runs.tables, runs.shard, runs.row, runs.part, start, end, (query,) * len(runs), tuple(forms),
        runs.document, words,
    )  # fmt: skip


def _matches_run(
    part: DocumentPart, run: list[tuple[int, int]], words: tuple[str, ...], gaps: list[str], before: str, after: str
) -> bool:
    """Return whether consecutive words of a text, and the characters around them, match the query's."""
    text = part.text
    return (
        all(lookup_key(text[a:b]) == word for (a, b), word in zip(run, words, strict=True))
        and [_comparable_gap(text[a:b]) for (_, a), (b, _) in pairwise(run)] == gaps
        and _comparable_gap(text[max(0, run[0][0] - len(before)) : run[0][0]]) == before
        and _comparable_gap(text[run[-1][1] : run[-1][1] + len(after)]) == after
    )


def _comparable_gap(text: str) -> str:
    """Normalize the text between words for comparison: single spaces, and one variant of each sign."""
    return BLANKS.sub(" ", lookup_key(text).translate(ALIKE))


def _no_occurrence_error(tables: StoreTables, word: str, by: str, reason: str) -> RegardError:
    """Return the RegardError for a word that isn't in an index, with the reason."""
    return RegardError(f"{by} {word!r} does not occur in embedding index {str(tables.path)!r}{reason}")


def _why_no_run(tables: StoreTables, query: str, words: list[str], counts: dict[str, int]) -> str:
    """Return why a run of words doesn't occur: a word isn't stored, or they don't occur together."""
    reason = _why_not_stored(tables, "word", query)
    if words == [query]:
        return reason
    missing = [word for word in dict.fromkeys(words) if word not in counts]
    names = ", ".join(map(repr, words))
    if not missing:
        return f": its words {names} do, but not together as given" if len(words) > 1 else ": not with these signs"
    return reason or f": the embedding index has single words, here {names}, and {missing[0]!r} does not occur"


def _why_not_stored(tables: StoreTables, by: str, query: str) -> str:
    """Return why an index lacks a word: a reason from its settings, or else the most similar words."""
    settings = tables.manifest.settings
    if by == "lemma" and not settings.get("lemma"):
        return ": it was made without --lemma and has no lemmas"
    if not tables.manifest.complete:
        return f". {tables.notes[0]}"
    if settings.get("where"):
        field, values = settings["where"]
        return f": it was made with {field} {' and '.join(values)} only"
    if tables.manifest.unit == "tokens":
        return ": it has tokens, not words: pass a token as the model's tokenizer writes it"
    candidates = [name for name in tables.distinct(by) if name and abs(len(name) - len(query)) < 3]
    matches = difflib.get_close_matches(query, candidates, n=3) if " " not in query else []
    return f": the nearest are {', '.join(map(repr, matches))}" if matches else ""
