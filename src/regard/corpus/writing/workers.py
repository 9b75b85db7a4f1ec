"""Build shards of documents in processes of this machine, one thread each; more are handed out as others are done."""

import gc
import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from regard.corpus import schema
from regard.corpus.environment import check_store_environment, digest_model, pin_store_products, pinned_store_products
from regard.corpus.reading.document import Document
from regard.corpus.settings import Settings
from regard.corpus.writing.attention_sums import SUMS
from regard.corpus.writing.cut_windows import (
    CutText,
    WindowSize,
    cut_texts,
    find_tokens,
    find_words,
    window_of_each_word,
)
from regard.corpus.writing.read_words import CutPart, DocumentReader, UnitVectors, read_words
from regard.corpus.writing.shard import ShardPlan, ShardTables, read_counts, sort_rows, write_shard
from regard.errors import RegardError
from regard.memory import give_memory_back
from regard.models.load import load
from regard.models.model import Model
from regard.models.states import count_layers

if TYPE_CHECKING:
    import pyarrow as pa

Span = tuple[str, int, int, str, str]  # a row of spans.parquet


def build_shard(reading: DocumentReader, documents: Sequence[Document]) -> ShardTables:
    """Read documents and make the tables of their shard; the same documents give the same tables."""
    settings = reading.settings
    parts: list[CutPart] = []
    spans: list[Span] = []
    unknown = reading.model.tokenizer.unk_token_id
    cuts = cut_texts(reading.model, [document.text for document in documents], reading.size)
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
    return ShardTables(texts_table(documents), rows, vectors, spans_table(spans), heads, tokens)


def _part(document: Document, cut: CutText, reading: DocumentReader) -> tuple[CutPart, list[tuple[int, int, str]]]:
    """The words of a part that are kept; and those that are not read whole, with their characters and why."""
    settings = reading.settings
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
    return CutPart(document, cut, units, window, place), long + [(a, b, "dropped") for a, b in missed]


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


def texts_table(documents: Sequence[Document]) -> "pa.Table":
    """Make texts.parquet: a row a part."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {
        "document": [each.id for each in documents],
        "start": [each.start for each in documents],
        "end": [each.start + len(each.text) for each in documents],
        "text": [each.text for each in documents],
        "source": [each.source for each in documents],
        "line": [each.line for each in documents],
        "metadata": [sorted(each.metadata.items()) for each in documents],
    }
    return pa.table(columns, schema=schema.texts())


def spans_table(spans: Sequence[Span]) -> "pa.Table":
    """Make spans.parquet."""
    import pyarrow as pa

    columns = {name: [span[n] for span in spans] for n, name in enumerate(schema.spans().names)}
    return pa.table(columns, schema=schema.spans())


def heads_table(heads: Float[np.ndarray, "N H sums"]) -> "pa.Table":
    """Make heads.parquet from the sums of every layer and head."""
    import pyarrow as pa

    layer, head = (each.ravel().astype(np.int32) for each in np.indices(heads.shape[:2]))
    sums = {name: heads[..., n].ravel() for n, name in enumerate(SUMS)}
    return pa.table({"layer": layer, "head": head} | sums, schema=schema.heads())


def rows_table(parts: Sequence[CutPart], part_rows: Sequence[int], found: UnitVectors, depth: int) -> "pa.Table":
    """Make rows.parquet, not sorted yet."""
    import pyarrow as pa

    def joined(each: Any) -> np.ndarray:
        return np.concatenate([np.zeros(0, np.int64), *(each(part) for part in parts)])

    forms = [part.document.text[a:b] for part in parts for a, b in zip(part.units.start, part.units.end, strict=True)]
    counts = [len(part.units) for part in parts]
    columns: dict[str, Any] = {
        "word": [word for part in parts for word in part.units.words],
        "form": forms,
        "lemma": [lemma for part, n in zip(parts, counts, strict=True) for lemma in part.units.lemmas or (None,) * n],
        "document": [part.document.id for part in parts for _ in part.units.words],
        "part": np.repeat(np.array(part_rows, np.int32), counts),
        "start": joined(lambda part: part.units.start + part.document.start),
        "end": joined(lambda part: part.units.end + part.document.start),
        "window": joined(lambda part: part.document_window).astype(np.int32),
        "position": joined(lambda part: part.place).astype(np.int32),
        "tokens": joined(lambda part: part.units.count).astype(np.int32),
    }
    if found.statistics is not None:
        for name, each in zip(schema.STATISTICS, found.statistics, strict=True):
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(each.ravel()), depth)
    if found.sources is not None:
        for name, each in zip(schema.SOURCES, found.sources, strict=True):
            columns[name] = pa.FixedSizeListArray.from_arrays(pa.array(each.ravel()), depth * schema.TOP)
    wanted = schema.rows(depth, statistics=found.statistics is not None, sources=found.sources is not None)
    return pa.table(columns, schema=wanted)


AHEAD = 2  # shards that wait for each worker: their texts are in memory


@dataclass(frozen=True)
class Job:
    """What a worker has to know to build any shard of a store; it can be sent to another process.

    folder: where shards are written. source, digest: the model, as `regard.load` takes it, and what it has to be.
    """

    folder: Path
    source: str | None
    digest: str
    settings: Settings
    layers: tuple[int, ...]
    size: WindowSize
    environment: dict[str, str]


Built = tuple[ShardPlan, dict[str, int], bool]  # a shard, its counts, and whether it was built now


def build(job: Job, reading: DocumentReader, plan: ShardPlan) -> dict[str, int]:
    """Build and write one shard, and return its counts."""
    counts = read_counts(write_shard(job.folder, plan.name, build_shard(reading, plan.documents)))
    give_memory_back()
    return counts


def build_here(job: Job, model: Model, plans: Iterable[ShardPlan]) -> Iterator[Built]:
    """Build the shards that are not there yet one after another, in this process."""
    reading = _reading(job, model)
    for plan in plans:
        missing = not (job.folder / plan.name).is_dir()
        with pinned_store_products(job.environment):
            counts = build(job, reading, plan) if missing else read_counts(job.folder / plan.name)
        yield plan, counts, missing


def build_in_processes(job: Job, plans: Iterable[ShardPlan], workers: int) -> Iterator[Built]:
    """Build the shards that are not there yet in so many processes; yield all of them in order."""
    context = multiprocessing.get_context("spawn")  # a forked child of a process that ran kernels can hang
    ours, end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_shard_worker, initargs=(ours,))

    waiting: deque[tuple[ShardPlan, Future[dict[str, int]] | None]] = deque()

    def next_built() -> Built:
        plan, future = waiting.popleft()
        return plan, read_counts(job.folder / plan.name) if future is None else future.result(), future is not None

    try:
        for plan in plans:
            with _without_script():
                waiting.append((plan, None if (job.folder / plan.name).is_dir() else pool.submit(_work, job, plan)))
            while len(waiting) > workers * AHEAD or (waiting and waiting[0][1] is None):
                yield next_built()
        while waiting:
            yield next_built()
        pool.shutdown(wait=True)
    except BrokenProcessPool as error:
        raise RegardError(
            "a worker was ended before its shard was written (is there enough memory for all workers?): what is "
            "written stays, the same command goes on from there"
        ) from error
    finally:
        end.close()  # where something failed: nobody waits for what the workers are at
        pool.shutdown(wait=True, cancel_futures=True)
        ours.close()


_worker: dict[str, Any] = {}


def _start_shard_worker(pipe: Connection) -> None:
    """Set a process up. pipe: its other end is the parent's alone: it closes when the parent ends, however it does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle

    def end_with_parent() -> None:
        wait([pipe])
        os._exit(1)  # a shard is written whole or not at all

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def _without_script() -> Iterator[None]:
    """Start processes that do not run the caller's script again, for they need nothing that is in it.

    They begin with Ctrl-C blocked: it is the parent's to handle, also while they import what they need. One that comes
    meanwhile waits for the end of the block.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if before is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        sys.modules["__main__"] = script


def _work(job: Job, plan: ShardPlan) -> dict[str, int]:
    """Build a shard in a worker, which loads the job's model and sets itself up before its first shard."""
    if not _worker:
        import torch

        torch.set_num_threads(1)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        check_store_environment(job.environment)
        pin_store_products(job.environment)
        model = load(job.source, device="cpu")
        if digest_model(model) != job.digest:
            raise RegardError(f"model {job.source!r} is not the one of the store: its weights or tokenizer differ")
        _worker["reading"] = _reading(job, model)
        # what is loaded stays to the end: the collector need not look at it each time that a shard makes many objects
        gc.freeze()
    return build(job, _worker["reading"], plan)


def _reading(job: Job, model: Model) -> DocumentReader:
    return DocumentReader(model, list(job.layers), job.size, job.settings)
