"""Look up a word in a store: its occurrences, with where they are, their vectors, and the text around them.

What isn't a word of a store is looked up as consecutive words: "don't", "the bank", 银行. A store's words are those of
`word_spans`: "don't" has two, and each character of scripts without blanks is one. Of such a run, the rarest word that
the store keeps is looked up, and the text around it compared.
"""

import difflib
import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Float, Int

from regard.corpus.settings import normal
from regard.corpus.shard_reader import RowColumns
from regard.corpus.store_tables import StoreTables
from regard.errors import RegardError
from regard.text.words import ALIKE, word_spans

COLUMNS = ("word", "form", "document", "part", "start", "end")
CONTEXT = 60  # characters on either side
MOST = 20_000  # occurrences of a page, each an element: in Chromium, on one busy core, as many took 9 s to open
BLANKS = re.compile(r"\s+")
PARTS = ("start", "text", "source", "line", "metadata")
FIELDS = ("word", "lemma")  # what a word may be looked up by


@dataclass(frozen=True)
class Line:
    """One occurrence in its context, a line of a concordance.

    left, right: what stands before and after it in its text, as many characters as were requested. start, end: its
    characters in the whole document. source, line: the file it was read from, and where in it. metadata: of its
    document. similarity: the cosine with what was requested. shard, row: where the store keeps it.
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
        """Read the parts of documents that they are in, by shard and part."""
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
        """Put each into its context with `context` characters on each side, with single blanks."""
        if context < 0:
            raise RegardError(f"context: got {context}, expected 0 or more characters")
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
        raise RegardError(f"rows: got {len(rows)} rows of {len(shards)} shards, expected one shard for each row")
    wanted: dict[str, list[int]] = {}
    for shard, row in zip(shards, rows, strict=True):
        wanted.setdefault(shard, []).append(int(row))
    found = in_store_order(tables, tables.rows_at(wanted, COLUMNS))
    places = {key: n for n, key in enumerate(zip(found.shard, found.row.tolist(), strict=True))}
    for key in zip(shards, rows, strict=True):
        if key not in places:
            raise RegardError(f"shard {key[0]}: the embedding index has no row {key[1]} in it")
    return found.take([places[key] for key in zip(shards, rows, strict=True)])


def in_store_order(tables: StoreTables, rows: RowColumns) -> Occurrences:
    """Make occurrences of rows with `COLUMNS`, sorted as they are in the texts."""
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


def look_up(tables: StoreTables, word: str, by: str = "word") -> Occurrences:
    """Find every occurrence of a word, of a lemma, or of a run of words, in the order of the store."""
    if by not in FIELDS:
        raise RegardError(f"by: got {by!r}, expected {' or '.join(FIELDS)}")
    wanted = normal(word.strip())
    if not wanted:
        raise RegardError("word is empty: pass a word of the embedding index")
    found = _by(tables, by, wanted)
    if len(found):
        return found
    if by == "lemma":
        raise _missing(tables, word, by, _instead(tables, by, wanted))
    spans = list(word_spans(wanted))
    if not spans:
        raise _missing(tables, word, by, ": it has no letter or digit. Each word of an index has one")
    words = [normal(wanted[start:end]) for start, end in spans]
    counts = {text: n for text in dict.fromkeys(words) if (n := len(tables.rows_with("word", text, ())))}
    if counts and words != [wanted]:
        anchor = min(counts, key=lambda each: (counts[each], each))
        found = _whole_runs(_by(tables, by, anchor), wanted, spans, words.index(anchor))
    if not len(found):
        raise _missing(tables, word, by, _of_run(tables, wanted, words, counts))
    return found


def _by(tables: StoreTables, by: str, wanted: str) -> Occurrences:
    return in_store_order(tables, tables.rows_with(by, wanted, COLUMNS))


def _whole_runs(anchors: Occurrences, wanted: str, spans: list[tuple[int, int]], at: int) -> Occurrences:
    """The runs among occurrences of one of their words. wanted: the run, whose words are at spans. at: which word."""
    between = [_plain(wanted[a:b]) for (_, a), (b, _) in pairwise(spans)]
    before, behind = _plain(wanted[: spans[0][0]]), _plain(wanted[spans[-1][1] :])
    words = tuple(normal(wanted[start:end]) for start, end in spans)
    texts, places = anchors.texts(), {}
    kept, edges, forms = [], [], []
    for n, key in enumerate(zip(anchors.shard, anchors.part.tolist(), strict=True)):
        part = texts[key]
        if key not in places:
            places[key] = list(word_spans(part.text))
        there = places[key]
        first = bisect_left(there, (int(anchors.start[n]) - part.start, 0)) - at
        run = there[first : first + len(words)] if first >= 0 else []
        if len(run) == len(words) and _stand_alike(part, run, words, between, before, behind):
            kept.append(n)
            edges.append((run[0][0] + part.start, run[-1][1] + part.start))
            forms.append(BLANKS.sub(" ", part.text[run[0][0] : run[-1][1]]))
    found = anchors.take(kept)
    if len(words) == 1:  # a word, asked for with the signs beside it
        return found
    start, end = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    return Occurrences(
        found.tables, found.shard, found.row, found.part, start, end, (wanted,) * len(found), tuple(forms),
        found.document, words,
    )  # fmt: skip


def _stand_alike(
    part: DocumentPart, run: list[tuple[int, int]], words: tuple[str, ...], between: list[str], before: str, behind: str
) -> bool:
    """Whether words of a text that stand side by side are those asked for, with the same between and beside them."""
    text = part.text
    return (
        all(normal(text[a:b]) == word for (a, b), word in zip(run, words, strict=True))
        and [_plain(text[a:b]) for (_, a), (b, _) in pairwise(run)] == between
        and _plain(text[max(0, run[0][0] - len(before)) : run[0][0]]) == before
        and _plain(text[run[-1][1] : run[-1][1] + len(behind)]) == behind
    )


def _plain(text: str) -> str:
    """What stands between words, as it is compared: any blanks are one, and signs that mean the same are the same."""
    return BLANKS.sub(" ", normal(text).translate(ALIKE))


def _missing(tables: StoreTables, word: str, by: str, why: str) -> RegardError:
    return RegardError(f"{by} {word!r} does not occur in embedding index {str(tables.path)!r}{why}")


def _of_run(tables: StoreTables, wanted: str, words: list[str], counts: dict[str, int]) -> str:
    """Why a run doesn't occur: which of its words the store doesn't keep, or that they don't stand so together."""
    instead = _instead(tables, "word", wanted)
    if words == [wanted]:
        return instead
    missing = [word for word in dict.fromkeys(words) if word not in counts]
    listed = ", ".join(map(repr, words))
    if not missing:
        return f": its words {listed} do, but not together as given" if len(words) > 1 else ": not with these signs"
    return instead or f": the embedding index has single words, here {listed}, and {missing[0]!r} does not occur"


def _instead(tables: StoreTables, by: str, wanted: str) -> str:
    """Report why a store lacks a word (not finished, some words, tokens, no lemmas), or which words are like it."""
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
    known = [each for each in tables.distinct(by) if each and abs(len(each) - len(wanted)) < 3]
    near = difflib.get_close_matches(wanted, known, n=3) if " " not in wanted else []
    return f": the nearest are {', '.join(map(repr, near))}" if near else ""
