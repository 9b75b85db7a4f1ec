"""Find occurrences of a word as a concordance: each a line in its context, sorted by place, context or meaning.

Sorted by meaning, lines with a sentence to compare with (`like`) go from the most to the least similar. Without one
they go along the first principal axis of the word's embeddings, the direction in which they differ most: an order
without a parameter, where senses would need their number. What is near is near by the cosine of contextual embeddings,
which carry more than meanings: `benchmarks/like.py` measures how many of the first lines have the meaning asked for.

In a store of texts (`regard embed --unit texts`), find those whose sentence embeddings are nearest to that of a text.
Reimers & Gurevych 2019, "Sentence-BERT": texts are compared by the cosine of one vector each.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Literal, get_args

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
    check_keeps_words,
    flat_rows,
    look_up,
)
from regard.corpus.asking.places import WordSpan, embed_places
from regard.corpus.asking.vectors import cosines, find_nearest_rows, principal_axes
from regard.corpus.settings import Settings
from regard.corpus.store_tables import StoreTables
from regard.display.answer import Answer
from regard.display.panels import Cell, Column, InContext, Panel, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.wording import listed
from regard.text.quoting import quoted
from regard.text.tokens import check_text
from regard.text.words import find_spans

LONGEST = 200_000_000  # bytes of a page's sentences: browsers are slow to open more
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
NEAREST = 100  # lines of a search among all words or texts, where no other number is given
ORDERS = {
    "source": "in the order of the texts",
    "left": "sorted by the words before it",
    "right": "sorted by the words after it",
    "meaning": "sorted along the first principal axis of the embeddings",
}
BEGINNING = 160  # characters of a text that a table shows
TEXT_TABLE: list[list[Template]] = [
    [
        ("The only text in the embedding index has cosine {cosine} with your text.", lambda n: n["total"] == 1),
        ("The nearest text is {document} with cosine {cosine}. The mean cosine of all {total} texts is {mean}.", None),
    ],
    [
        ("The table has the {shown} nearest texts, down to cosine {smallest}. Pass `--top` (`top=`) for more.",
         lambda n: n["shown"] < n["total"]),
    ],
]  # fmt: skip


def contexts_of(found: Occurrences, reach: int) -> list[InContext]:
    """Put occurrences into contexts of so many characters on either side."""
    texts = found.texts()
    spans = zip(found.start.tolist(), found.end.tolist(), strict=True)
    keys = zip(found.shard, found.part.tolist(), strict=True)
    return [_context(texts[key], start, end, reach) for key, (start, end) in zip(keys, spans, strict=True)]


def length_of(contexts: Sequence[InContext]) -> int:
    """Return how long contexts are in a page, which has them twice: once for those without JavaScript."""
    return 2 * sum(len(each.left) + len(each.right) for each in contexts)


def _context(part: DocumentPart, start: int, end: int, reach: int) -> InContext:
    place = excerpt_around_occurrence(part, start, end, reach)
    left, right = BLANKS.sub(" ", place.text[: place.start]), BLANKS.sub(" ", place.text[place.end :])
    before, behind = start - part.start > place.start, len(part.text) - (end - part.start) > len(place.text) - place.end
    return InContext("… " * before + left.lstrip(), place.form, right.rstrip() + " …" * behind)


def in_context(line: Line) -> list[Cell]:
    """Return an occurrence in its context, its document, and its first character there."""
    return [InContext(line.left, line.form, line.right), line.document, line.start]


@dataclass(frozen=True, eq=False, repr=False)
class Concordance(Answer):
    """Lines of occurrences in their order. total: how many there were to choose from; everywhere: of all words."""

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
        """Say which word."""
        return f"{quoted(self.word)} in the corpus"

    def findings(self) -> list[str]:
        """Say how often the word occurs, how many of its lines are here, and which is nearest to the sentence."""
        numbers = {
            "word": quoted(self.word), "total": self.total, "shown": len(self.lines), "everywhere": self.everywhere,
            "nearest": self.sort == "meaning" and self.like is not None,
        }  # fmt: skip
        if self.like is not None and self.lines:
            line = max(self.lines, key=lambda line: line.similarity or -1)
            numbers |= {"form": quoted(line.form), "document": line.document, "cosine": line.similarity}
        return sentences(TABLE, numbers)

    def rows(self) -> list[Row]:
        """List the lines as rows of one table: metadata as columns of their own, metadata.NAME."""
        return flat_rows(self.lines)

    def data(self) -> dict[str, object]:
        """Give all that is known of the lines, and what was asked."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("lines", "about")}
        return own | {"lines": [asdict(line) for line in self.lines]}

    def exactness(self) -> list[str]:
        """List the notes on the index and on how the word was looked up."""
        return list(self.notes)

    def for_page(self) -> "Concordance":
        """Refuse to show more lines than a page draws."""
        if len(self.lines) > MOST:
            raise RegardError(
                f"page: {self.word!r} has {len(self.lines):,} lines, {MOST:,} are the most that a page shows: ask for "
                "the first of them (top=, --top), --csv has all"
            )
        return self

    def panels(self) -> list[Panel]:
        """Show every line with its word marked, and where it is from."""
        like = self.like is not None
        order = "sorted by cosine" if like and self.sort == "meaning" else ORDERS[self.sort]
        layer = f", layer {self.layer}" if like or self.sort == "meaning" else ""
        words = f"Words nearest to {quoted(self.word)}" if self.everywhere else f"Occurrences of {quoted(self.word)}"
        columns = [
            Column("in context"), Column("document"), Column("from", 0), *([Column("cosine", 2)] if like else []),
        ]  # fmt: skip
        rows = [[*in_context(line), *([line.similarity] if like else [])] for line in self.lines]
        note = "from: position of the first character in the document."
        if like:
            also = "A similar topic or sentence also raises the cosine."
            note = f"cosine: similarity to {quoted(self.word)} in your sentence. {also}"
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
    """Find the occurrences of a word."""
    chosen = ("meaning" if like is not None else "source") if sort is None else sort
    if chosen not in SORTS:
        raise RegardError(f"sort: given {chosen!r}, needs {', '.join(SORTS)}")
    if top is not None and top < 1:
        raise RegardError(f"top: given {top}, needs 1 or more")
    if everywhere and like is None:
        raise RegardError("everywhere: needs like, a sentence with the word, to compare other words with")
    tables.layer_index(layer)
    check_keeps_words(tables)
    notes = tables.notes
    similarity: Float[np.ndarray, " n"] | None
    if everywhere and like is not None:
        near = find_nearest_rows(tables, _embed_like(tables, word, like, layer), top or NEAREST, layer)
        found, similarity, total = near.found, near.similarity, near.total
    else:
        found = look_up(tables, word, by)
        if found.run:
            words = listed([quoted(each) for each in found.run])
            notes += (f"{quoted(word)} was looked up as the consecutive words {words}.",)
        total, similarity = len(found), None
        if like is not None:
            vectors = found.vectors(layer)  # a run has none: that is said before a model is loaded
            similarity = cosines(vectors, _embed_like(tables, word, like, layer))
    order = np.arange(len(found))
    if chosen == "meaning":
        ranked = principal_axes(found.vectors(layer), 1)[0][:, 0] if similarity is None else -similarity
        order = np.argsort(ranked, kind="stable")
    if chosen in ("source", "meaning") and top is not None:  # else every context is needed to sort by
        order = order[:top]
    picked = found.take(order)
    lines = picked.lines(context, None if similarity is None else similarity[order].tolist())
    if chosen == "left":  # the nearest word first
        lines = sorted(lines, key=lambda line: line.left.casefold().split()[::-1])[:top]
    elif chosen == "right":
        lines = sorted(lines, key=lambda line: line.right.casefold().split())[:top]
    used = tables.layer if layer is None else layer
    return Concordance(word, tuple(lines), total, chosen, like, used, notes, everywhere)


def _embed_like(tables: StoreTables, word: str, sentence: str, layer: int | None = None) -> Float[np.ndarray, " M"]:
    """Embed a word in a sentence as the store's rows were."""
    spans = find_spans(sentence, word)
    if len(spans) > 1:
        raise RegardError(f"like: word {word!r} occurs {len(spans)} times in the sentence, needs to occur once")
    used = tables.layer if layer is None else layer
    vector: Float[np.ndarray, " M"] = embed_places(tables.model, [WordSpan(sentence, *spans[0])], [used])[0, 0]
    return vector


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
        return sentences(TEXT_TABLE, numbers)

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
