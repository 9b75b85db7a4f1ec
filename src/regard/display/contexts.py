"""Put occurrences into their sentences, cut where words end; … stands where a text goes on."""

from collections.abc import Sequence

from regard.corpus.asking.context_words import excerpt_around_occurrence
from regard.corpus.asking.occurrences import BLANKS, Line, Occurrences, Part
from regard.display.panels import Cell, InContext

LONGEST = 200_000_000  # bytes of a page's sentences: browsers are slow to open more


def contexts_of(found: Occurrences, reach: int) -> list[InContext]:
    """Put occurrences into contexts of so many characters on either side."""
    texts = found.texts()
    spans = zip(found.start.tolist(), found.end.tolist(), strict=True)
    keys = zip(found.shard, found.part.tolist(), strict=True)
    return [_context(texts[key], start, end, reach) for key, (start, end) in zip(keys, spans, strict=True)]


def length_of(contexts: Sequence[InContext]) -> int:
    """Return how long contexts are in a page, which has them twice: once for those without JavaScript."""
    return 2 * sum(len(each.left) + len(each.right) for each in contexts)


def _context(part: Part, start: int, end: int, reach: int) -> InContext:
    place = excerpt_around_occurrence(part, start, end, reach)
    left, right = BLANKS.sub(" ", place.text[: place.start]), BLANKS.sub(" ", place.text[place.end :])
    before, behind = start - part.start > place.start, len(part.text) - (end - part.start) > len(place.text) - place.end
    return InContext("… " * before + left.lstrip(), place.form, right.rstrip() + " …" * behind)


def in_context(line: Line) -> list[Cell]:
    """Return an occurrence in its context, its document, and its first character there."""
    return [InContext(line.left, line.form, line.right), line.document, line.start]
