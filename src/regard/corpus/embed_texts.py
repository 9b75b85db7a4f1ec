"""Read any amount of text once and keep every word's embedding, and what its attention did, in a store.

Shards are built in processes of this machine, one thread each; more are handed out as others are done.
"""

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from regard.checks import is_whole
from regard.corpus import schema
from regard.corpus.reading.document import Columns, Rejected
from regard.corpus.reading.documents import LINK, find_files_and_rejected, read_documents
from regard.corpus.schema import NAME, Manifest, ModelSummary, ShardSummary, absolute, read_manifest
from regard.corpus.settings import Settings, chosen_layers_to_store
from regard.corpus.shard_reader import NAME as INDEX
from regard.corpus.shard_reader import sha256_of_shard_file
from regard.corpus.store_tables import check_store_environment, describe_store_environment, digest_model
from regard.corpus.writing.build_shard import DocumentReader, build_shard
from regard.corpus.writing.cut_windows import WindowSize, check_lemma_language, window_size
from regard.corpus.writing.store_folder import (
    QUARANTINE,
    SHARDS,
    Compared,
    ShardPlan,
    StoredTexts,
    check_apart,
    check_seen,
    compare,
    opened_store_folder,
    plan_shards,
    read_counts,
    remove_others,
    remove_unfinished_shards,
    write_shard,
)
from regard.errors import RegardError
from regard.files import whole
from regard.lazy import import_from_corpus_extra
from regard.memory import give_memory_back
from regard.models.load import load
from regard.models.model import Model
from regard.models.states import count_heads, count_layers, state_width

AHEAD = 2  # shards that wait for each worker: their texts are in memory


@dataclass(frozen=True)
class Job:
    """The data that a worker needs to build any shard of a store. It can be sent to another process.

    folder: where shards are written. source, digest: the model, as in `regard.load`, and what it has to be.
    """

    folder: Path
    source: str | None
    digest: str
    settings: Settings
    layers: list[int]
    size: WindowSize


Built = tuple[ShardPlan, dict[str, int], bool]  # a shard, its counts, and whether it was built now


def build(job: Job, reading: DocumentReader, plan: ShardPlan) -> dict[str, int]:
    """Build and write one shard, and return its counts."""
    counts = read_counts(write_shard(job.folder, plan.name, build_shard(reading, plan.documents)))
    give_memory_back()
    return counts


def build_here(job: Job, model: Model, plans: Iterable[ShardPlan]) -> Generator[Built, None, None]:
    """Build the shards that aren't there yet one after another, in this process and one thread."""
    reading, threads = DocumentReader(model, job.layers, job.size, job.settings), torch.get_num_threads()
    for plan in plans:
        missing = not (job.folder / plan.name).is_dir()
        torch.set_num_threads(1)
        try:
            counts = build(job, reading, plan) if missing else read_counts(job.folder / plan.name)
        finally:
            torch.set_num_threads(threads)
        yield plan, counts, missing


def build_in_processes(job: Job, plans: Iterable[ShardPlan], workers: int) -> Generator[Built, None, None]:
    """Build the shards that aren't there yet in so many processes; yield all of them in order."""
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
    """Start processes that don't run the caller's script again, for they need nothing that is in it.

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
        torch.set_num_threads(1)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        model = load(job.source, device="cpu")
        if digest_model(model) != job.digest:
            raise RegardError(f"model {job.source!r} is not the one of the store: its weights or tokenizer differ")
        _worker["reading"] = DocumentReader(model, job.layers, job.size, job.settings)
        # what is loaded stays to the end: the collector need not look at it each time that a shard makes many objects
        gc.freeze()
    return build(job, _worker["reading"], plan)


SELDOM = 50  # times as long as writing the manifest takes, which names all shards, before it is written again


@dataclass(frozen=True)
class EmbedProgress:
    """How far `embed` is: shards, characters and tokens that are done, and of them the tokens read in this run."""

    shards: int
    characters: int
    tokens: int
    new_tokens: int
    seconds: float


@dataclass(frozen=True)
class EmbedReport:
    """The result of `embed`. counts: of everything in the store and of what was left out. rejected: in quarantine.

    built, new_tokens: shards that were built in this run and their tokens; the others were there. notes: what to know
    of documents that are missing and links that were skipped.
    """

    store: Path
    counts: dict[str, int]
    rejected: list[Rejected]
    built: int
    new_tokens: int
    seconds: float
    notes: tuple[str, ...] = ()


def embed(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | Model | None = None,
    settings: Settings | None = None,
    columns: Columns | None = None,
    workers: int | None = None,
    progress: Callable[[EmbedProgress], None] | None = None,
    prune: bool = False,
    follow_links: bool = False,
) -> EmbedReport:
    """Read texts and write a store of their words' contextual embeddings and attention.

    A run that was ended anywhere goes on where it was when it is started again, and ends with the same bytes. Documents
    that the store has and that aren't there any more stay in it.
    """
    import_from_corpus_extra("pyarrow")
    if model is not None and not isinstance(model, (str, os.PathLike, Model)):
        raise RegardError(f"embed: model: got a {type(model).__name__}, expected a name or a model from regard.load")
    started = time.monotonic()
    settings = settings or Settings()
    given = [os.fspath(each) for each in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    if workers is None:  # as many as there are cores that this process may use
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not is_whole(workers) or workers < 1:
        raise RegardError(f"workers: got {workers!r}, expected a whole number of processes above 0")
    if settings.lemma is not None:
        check_lemma_language(settings.lemma)
    store = Path(out).absolute()
    found = find_files_and_rejected(given, follow_links=follow_links)
    check_apart(Path(out), given, [each for each in found if isinstance(each, Path)])
    loaded = model if isinstance(model, Model) else load(model)
    source = None if isinstance(model, Model) or model is None else os.fspath(model)
    columns = columns or Columns()
    with opened_store_folder(store):
        manifest = begin_store(store, given, loaded, source, settings, columns)
        stored = StoredTexts(store / SHARDS, [each.name for each in manifest.shards])
        check_seen(found, stored)
        notes: tuple[str, ...] = ()
        size = window_size(loaded, settings)
        # the source as any process finds it, whatever folder it is in
        there = os.path.abspath(source) if source is not None and os.path.exists(source) else source
        job = Job(store / SHARDS, there, manifest.model.digest, settings, manifest.layers, size)
        rejected: list[Rejected] = []
        read = read_documents(manifest.given, columns, folder=Path(manifest.folder), follow_links=follow_links)
        compared = Compared()
        kept = compare(read, stored, compared, by_id=columns.id is not None, prune=prune)
        plans = plan_shards(kept, manifest, rejected)
        if isinstance(model, Model):
            built = build_here(job, loaded, plans)
        else:
            del loaded  # the workers have their own
            built = build_in_processes(job, plans, workers)
        first = None if manifest.complete else manifest
        # Workers end before what they left is removed, though an exception's traceback keeps the iterator: one that
        # still writes would put a shard without half of its files in place.
        with closing(built):
            shards, counts, new, new_tokens = _gather(built, store, first, started, progress)
        if not compared.read:
            raise RegardError(_no_document_read(rejected, given))
        counts["quarantined"] = len(rejected)
        if compared.gone:
            missing = f"{compared.gone:,} missing document{'s' * (compared.gone != 1)} (first: {compared.first!r})"
            them = "them" if compared.gone > 1 else "it"
            notes += (f"Removed {missing}." if prune else f"Kept {missing}. Pass `--prune` to remove {them}.",)
            counts |= {} if prune else {"gone": compared.gone}
        quarantine = _write_quarantine(store, rejected)
        # in this order: a manifest names no shard that is not there, whenever the run is ended
        done = replace(manifest, shards=shards, counts=dict(counts), complete=True, quarantine=quarantine)
        done.write(store)
        remove_others(job.folder, {shard.name for shard in shards})
    if links := sum(each.reason == LINK for each in rejected):
        notes += (
            f"Skipped {links:,} link{'s' * (links > 1)}. Pass `--follow-links` (`follow_links=True`) to follow links.",
        )
    return EmbedReport(store, dict(counts), rejected, new, new_tokens, time.monotonic() - started, notes)


def _gather(
    built: Iterable[Built],
    store: Path,
    first: Manifest | None,
    started: float,
    progress: Callable[[EmbedProgress], None] | None,
) -> tuple[list[ShardSummary], Counter[str], int, int]:
    """The shards as they come, what they hold in all, how many are new, and these tokens.

    first: the manifest of a store that was never complete, which names its shards as they are finished: it can be asked
    meanwhile. It never names fewer than before.
    """
    shards: list[ShardSummary] = []
    counts: Counter[str] = Counter()
    new, characters, new_tokens, due = 0, 0, 0, 0.0
    for plan, held, missing in built:
        sha256 = sha256_of_shard_file(store / SHARDS / plan.name / INDEX)
        shards.append(ShardSummary(plan.name, held["parts"], held["rows"], held["tokens"], sha256))
        counts.update(held)
        counts["documents"] += sum(each.start == 0 for each in plan.documents)
        new += missing
        characters += plan.characters
        new_tokens += held["tokens"] if missing else 0
        if first is not None and len(shards) > len(first.shards) and time.monotonic() >= due:
            began = time.monotonic()
            replace(first, shards=shards).write(store)
            due = began + SELDOM * (time.monotonic() - began)
        if progress is not None:
            seconds = time.monotonic() - started
            progress(EmbedProgress(len(shards), characters, counts["tokens"], new_tokens, seconds))
    return shards, counts, new, new_tokens


def _write_quarantine(store: Path, rejected: Sequence[Rejected]) -> str:
    """Write what could not be read; returns the file's SHA-256."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(each, name) for each in rejected] for name in schema.quarantine().names}
    with whole(store / QUARANTINE) as file:
        pq.write_table(pa.table(columns, schema=schema.quarantine()), file)
    return sha256_of_shard_file(store / QUARANTINE)


def _no_document_read(rejected: Sequence[Rejected], paths: Sequence[str]) -> str:
    """The message if no document could be read."""
    if not rejected:
        return f"no text in {', '.join(paths[:3])}: nothing was read"
    first = rejected[0]
    place = first.source if first.line is None else f"{first.source}:{first.line}"
    more = f", and {len(rejected) - 1} more" if len(rejected) > 1 else ""
    return f"no document could be read: {place}: {first.reason}{more}"


def begin_store(
    store: Path, paths: list[str], model: Model, source: str | None, settings: Settings, columns: Columns
) -> Manifest:
    """Write the manifest of a new store, or read that of one that is there."""
    if model.tokenizer is None:
        raise RegardError(f"model {model.name!r} has no tokenizer, so it can't read texts")
    if model.pairs:
        raise RegardError(f"model {model.name!r} is an encoder-decoder: a corpus needs a model with a single stack")
    depth = count_layers(model)
    summary = ModelSummary(model.name, source or "", digest_model(model), depth, count_heads(model), state_width(model))
    layers = chosen_layers_to_store(settings.layers, depth, model.name)
    if not (store / NAME).exists():
        environment, named = describe_store_environment(), [columns.text, columns.id]
        manifest = Manifest(summary, settings.to_json(), environment, paths, layers, columns=named, folder=os.getcwd())
        manifest.write(store)
        return manifest
    held = read_manifest(store)
    wanted = settings.to_json()
    for what, was, given in (
        ("paths", held.inputs, absolute(paths, os.getcwd())),
        ("model", held.model.digest, summary.digest),
        *((f"setting {name}", held.settings[name], wanted[name]) for name in wanted),
        ("layers", held.layers, layers),
        ("columns", held.columns, [columns.text, columns.id]),
    ):
        if was != given:
            raise RegardError(
                f"store {str(store)!r} was made with {what} {was}, not {given}: use another --out, or the same settings"
            )
    check_store_environment(held.environment)
    remove_unfinished_shards(store / SHARDS)
    return held
