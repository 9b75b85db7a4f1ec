"""Read the documents of one shard with a model, and make the tables that are written for it."""

from collections.abc import Sequence

import numpy as np

from regard.corpus.reading.document import Document
from regard.corpus.writing.cut_windows import CutText, cut_texts, window_of_each_word
from regard.corpus.writing.pooled_windows import find_windows
from regard.corpus.writing.read_words import Part, Reading, read_words
from regard.corpus.writing.shard import ShardTables, sort_rows
from regard.corpus.writing.shard_tables import Span, heads_table, rows_table, spans_table, texts_table
from regard.corpus.writing.words import find_tokens, find_words
from regard.memory import give_memory_back
from regard.models.states import count_layers


def build_shard(reading: Reading, documents: Sequence[Document]) -> ShardTables:
    """Read documents and make the tables of their shard; the same documents give the same tables."""
    settings = reading.settings
    parts: list[Part] = []
    spans: list[Span] = []
    unknown = reading.model.tokenizer.unk_token_id
    texts = [each.text for each in documents]
    cuts = cut_texts(reading.model, texts, reading.size, settings.prompt or "")
    part_rows = []
    for row, (document, cut) in enumerate(zip(documents, cuts, strict=True)):
        if cut is None:
            spans.append(_span(document, 0, len(document.text), "dropped"))
            continue
        spans += _unread(document, cut, unknown)
        part, split = _part(document, cut, reading)
        spans += [_span(document, start, end, kind) for start, end, kind in split]
        parts.append(part)
        part_rows.append(row)
    found = read_words(reading, parts)
    give_memory_back()  # what the passes took, before the tables take theirs
    rows = rows_table(parts, part_rows, found, count_layers(reading.model))
    rows, vectors = sort_rows(rows, found.vectors)
    heads = None if found.heads is None or not settings.statistics else heads_table(found.heads)
    tokens = sum(len(part.cut.ids) for part in parts)
    return ShardTables(texts_table(documents), rows, vectors, spans_table(spans), heads, tokens, found.closeness)


def _part(document: Document, cut: CutText, reading: Reading) -> tuple[Part, list[tuple[int, int, str]]]:
    """The words of a part that are kept; and those that are not read whole, with their characters and why."""
    settings = reading.settings
    if settings.unit == "texts":
        every = np.arange(len(cut.windows))
        return Part(document, cut, find_windows(cut), every, np.zeros_like(every)), []
    tokens = np.flatnonzero(~cut.special & (cut.ends > cut.starts))
    starts, ends = cut.starts[tokens], cut.ends[tokens]
    if settings.unit == "words":
        units, missed = find_words(document.text, starts, ends, tokens, settings.where, settings.lemma)
    else:
        units, missed = find_tokens(document.text, starts, ends, tokens), []
    window = window_of_each_word(units.first, units.first + units.count - 1, cut.spans, reading.size.causal)
    long = [(int(units.start[n]), int(units.end[n]), "long") for n in np.flatnonzero(window < 0)]
    kept = np.flatnonzero(window >= 0)
    units, window = units.take(kept), window[kept]
    firsts = np.array([start for start, _ in cut.spans])
    place = units.first - firsts[window] + cut.before
    return Part(document, cut, units, window, place), long + [(a, b, "dropped") for a, b in missed]


def _unread(document: Document, cut: CutText, unknown: int | None) -> list[Span]:
    """The characters of a part that the model does not read as they stand. unknown: the id that stands for such."""
    found, at = [], 0
    for token in sorted(cut.encoded.tokens, key=lambda each: (each.start, each.end)):
        if document.text[at : token.start].strip():
            found.append(_span(document, at, token.start, "dropped"))
        at = max(at, token.end)
        if token.end > token.start and (token.special or token.id == unknown):
            found.append(_span(document, token.start, token.end, "special" if token.special else "unknown"))
    if document.text[at:].strip():
        found.append(_span(document, at, len(document.text), "dropped"))
    return found


def _span(document: Document, start: int, end: int, kind: str) -> Span:
    """A row of spans.parquet, without the blanks around it."""
    text = document.text[start:end]
    start += len(text) - len(text.lstrip())
    end -= len(text) - len(text.rstrip())
    return document.id, document.start + start, document.start + end, kind, document.text[start:end]
