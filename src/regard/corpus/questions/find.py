"""Find a word's occurrences as a concordance (KWIC), sorted by source, context or similarity of meaning.

Sorting by meaning orders lines by cosine with the word in a sentence (`like`). Without a sentence, it orders them along
the first principal axis of the word's embeddings, the direction of largest variance. Unlike clustering, this needs no
number of senses. Contextual embeddings encode more than meaning. `benchmarks/like.py` measures how many of the first
lines have the meaning that you asked for.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import ClassVar, Literal, get_args

import numpy as np
from jaxtyping import Float

from regard.corpus.asking.clusters import excerpt_around_occurrence
from regard.corpus.asking.occurrences import (
    BLANKS,
    CONTEXT,
    MOST,
    DocumentPart,
    Line,
    Occurrences,
    flat_rows,
    look_up,
)
from regard.corpus.asking.vectors import WordSpan, cosines, embed_spans, find_nearest_rows, principal_axes
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import Cell, Column, InContext, Panel, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.wording import listed
from regard.shown import Row
from regard.text.quoting import quoted
from regard.text.words import find_spans

LONGEST = 200_000_000  # maximum number of bytes of sentences on a page; browsers open larger pages slowly
Sort = Literal["meaning", "source", "left", "right"]
SORTS: tuple[Sort, ...] = get_args(Sort)
TABLE: list[list[Template]] = [
    [
        ("The embedding index has {total} words. The table has the {shown} nearest.", lambda n: n["everywhere"]),
        ("{word} occurs once.", lambda n: n["total"] == 1),
        ("{word} occurs {total} times.", lambda n: n["shown"] == n["total"]),
        ("{word} occurs {total} times. The table has the {shown} nearest.", lambda n: n["nearest"]),
        ("{word} occurs {total} times. The table has the first {shown}.", None),
    ],
    [("{form} in {document} is nearest to {word} in your sentence (cosine {cosine}).", None)],
]
NEAREST = 100  # default number of lines in a search among all words
ORDERS = {
    "source": "in the order of the texts",
    "left": "sorted by the words before it",
    "right": "sorted by the words after it",
    "meaning": "sorted along the first principal axis of the embeddings",
}


def contexts_of_occurrences(occurrences: Occurrences, reach: int) -> list[InContext]:
    """Return each occurrence with `reach` characters of text on either side, cut to whole words."""
    texts = occurrences.texts()
    spans = zip(occurrences.start.tolist(), occurrences.end.tolist(), strict=True)
    keys = zip(occurrences.shard, occurrences.part.tolist(), strict=True)
    return [_context_around(texts[key], start, end, reach) for key, (start, end) in zip(keys, spans, strict=True)]


def length_of_contexts(contexts: Sequence[InContext]) -> int:
    """Return the total number of characters in the left and right contexts."""
    return sum(len(context.left) + len(context.right) for context in contexts)


def _context_around(part: DocumentPart, start: int, end: int, reach: int) -> InContext:
    """Return an occurrence with the text on either side, and an ellipsis where the text is cut."""
    span = excerpt_around_occurrence(part, start, end, reach)
    left, right = BLANKS.sub(" ", span.text[: span.start]), BLANKS.sub(" ", span.text[span.end :])
    before, after = start - part.start > span.start, len(part.text) - (end - part.start) > len(span.text) - span.end
    return InContext("… " * before + left.lstrip(), span.form, right.rstrip() + " …" * after)


def context_cells(line: Line) -> list[Cell]:
    """Return an occurrence's cells in a table: context, document, and position of the first character in it."""
    return [InContext(line.left, line.form, line.right), line.document, line.start]


@dataclass(frozen=True, eq=False, repr=False)
class Concordance(Answer):
    """The result of `find`: sorted lines. total: number of candidates. everywhere: whether all words were searched."""

    format: ClassVar[str] = "regard find"

    word: str
    lines: tuple[Line, ...]
    total: int
    sort: str
    like: str | None
    layer: int
    notes: tuple[str, ...]
    everywhere: bool = False

    def title(self) -> str:
        """Return the title, with the word."""
        return f"{quoted(self.word)} in the corpus"

    def findings(self) -> list[str]:
        """Report how often the word occurs, how many lines are shown, and the line nearest to the sentence."""
        numbers = {
            "word": quoted(self.word), "total": self.total, "shown": len(self.lines), "everywhere": self.everywhere,
            "nearest": self.sort == "meaning" and self.like is not None,
        }  # fmt: skip
        if self.like is not None and self.lines:
            line = max(self.lines, key=lambda line: line.similarity or -1)
            numbers |= {"form": quoted(line.form), "document": line.document, "cosine": line.similarity}
        return sentences(TABLE, numbers)

    def rows(self) -> list[Row]:
        """Return the lines as table rows, with a column `metadata.NAME` for each metadata name."""
        return flat_rows(self.lines)

    def data(self) -> dict[str, object]:
        """Return the lines and the query's settings for JSON."""
        data = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("lines", "about")}
        return data | {"lines": [asdict(line) for line in self.lines]}

    def exactness(self) -> list[str]:
        """Return the notes on the index and on the lookup of the word."""
        return list(self.notes)

    def for_page(self) -> "Concordance":
        """Check that a page can show all lines. Raises RegardError if there are too many."""
        if len(self.lines) > MOST:
            raise RegardError(
                f"page: {self.word!r} has {len(self.lines):,} lines, a page shows at most {MOST:,}: ask for "
                "the first of them (top=, --top), --csv has all"
            )
        return self

    def panels(self) -> list[Panel]:
        """Return a table of all lines, with the word marked and the source of each."""
        has_cosine = self.like is not None
        order = "sorted by cosine" if has_cosine and self.sort == "meaning" else ORDERS[self.sort]
        layer = f", layer {self.layer}" if has_cosine or self.sort == "meaning" else ""
        words = f"Words nearest to {quoted(self.word)}" if self.everywhere else f"Occurrences of {quoted(self.word)}"
        columns = [
            Column("in context"), Column("document"), Column("from", 0), *([Column("cosine", 2)] if has_cosine else []),
        ]  # fmt: skip
        rows = [[*context_cells(line), *([line.similarity] if has_cosine else [])] for line in self.lines]
        note = "from: position of the first character in the document."
        if has_cosine:
            warning = "A similar topic or sentence also raises the cosine."
            note = f"cosine: similarity to {quoted(self.word)} in your sentence. {warning}"
        return [
            Table(
                name="Occurrences", title=f"{words}, {order}{layer}", note=note, columns=columns, rows=rows, screen=True
            )
        ]


def find(
    tables: StoreTables,
    word: str,
    *,
    like: str | None = None,
    everywhere: bool = False,
    by: str = "word",
    sort: str | None = None,
    top: int | None = None,
    layer: int | None = None,
    context: int = CONTEXT,
) -> Concordance:
    """Find the occurrences of a word, or with `everywhere` the words nearest to it in meaning."""
    ordering = ("meaning" if like is not None else "source") if sort is None else sort
    if ordering not in SORTS:
        raise RegardError(f"sort: got {ordering!r}, expected one of {', '.join(SORTS)}")
    if top is not None and top < 1:
        raise RegardError(f"top: got {top}, expected 1 or more")
    if everywhere and like is None:
        raise RegardError("everywhere needs like: pass a sentence with the word, to compare other words with")
    tables.layer_index(layer)
    notes = tables.notes
    similarity: Float[np.ndarray, " n"] | None
    if everywhere and like is not None:
        matches, similarity = find_nearest_rows(tables, _embed_like(tables, word, like, layer), top or NEAREST, layer)
        total = sum(shard.rows for shard in tables.manifest.shards)
    else:
        matches = look_up(tables, word, by)
        if matches.run:
            words = listed([quoted(part) for part in matches.run])
            notes += (f"{quoted(word)} was looked up as the consecutive words {words}.",)
        total, similarity = len(matches), None
        if like is not None:
            vectors = matches.vectors(layer)  # raises for several words, before a model is loaded
            similarity = cosines(vectors, _embed_like(tables, word, like, layer))
    order = np.arange(len(matches))
    if ordering == "meaning":
        ranked = principal_axes(matches.vectors(layer), 1)[0][:, 0] if similarity is None else -similarity
        order = np.argsort(ranked, kind="stable")
    if ordering in ("source", "meaning") and top is not None:  # other orders need all contexts
        order = order[:top]
    selection = matches.take(order)
    lines = selection.lines(context, None if similarity is None else similarity[order].tolist())
    if ordering == "left":  # the nearest word first
        lines = sorted(lines, key=lambda line: line.left.casefold().split()[::-1])[:top]
    elif ordering == "right":
        lines = sorted(lines, key=lambda line: line.right.casefold().split())[:top]
    chosen_layer = tables.layer if layer is None else layer
    return Concordance(word, tuple(lines), total, ordering, like, chosen_layer, notes, everywhere)


def _embed_like(tables: StoreTables, word: str, sentence: str, layer: int | None = None) -> Float[np.ndarray, " M"]:
    """Return the embedding of a word in a sentence, computed like those of the index."""
    spans = find_spans(sentence, word)
    if len(spans) > 1:
        raise RegardError(f"like: word {word!r} occurs {len(spans)} times in the sentence, expected once")
    chosen_layer = tables.layer if layer is None else layer
    vector: Float[np.ndarray, " M"] = embed_spans(tables.model, [WordSpan(sentence, *spans[0])], [chosen_layer])[0, 0]
    return vector
