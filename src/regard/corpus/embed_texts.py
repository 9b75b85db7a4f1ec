"""Read texts and write every word's embedding and attention statistics into an embedding index.

Single-threaded worker processes build the shards. The next shard is queued when another is finished.
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
from regard.corpus.schema import NAME, Manifest, ModelSummary, ShardSummary, absolute_inputs, read_manifest
from regard.corpus.settings import Settings, chosen_layers_to_store
from regard.corpus.shard_reader import NAME as INDEX
from regard.corpus.shard_reader import sha256_of_shard_file
from regard.corpus.store_tables import check_store_environment, describe_store_environment, digest_model
from regard.corpus.writing.build_shard import DocumentReader, build_shard
from regard.corpus.writing.cut_windows import WindowSize, check_lemma_language, window_size
from regard.corpus.writing.store_folder import (
    QUARANTINE,
    SHARDS,
    DocumentCounts,
    ShardPlan,
    StoredTexts,
    check_listable,
    check_outside_inputs,
    compare,
    opened_store_folder,
    plan_shards,
    read_counts,
    remove_other_shards,
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

AHEAD = 2  # shards queued per worker; all their texts are in memory


@dataclass(frozen=True)
class ShardJob:
    """The data that a worker process needs to build any shard of an index. It can be pickled.

    folder: the shards' folder. source: the model, as for `regard.load`. digest: the expected hash of the model.
    """

    folder: Path
    source: str | None
    digest: str
    settings: Settings
    layers: list[int]
    size: WindowSize


Built = tuple[ShardPlan, dict[str, int], bool]  # a shard, its counts, and whether this run built it


def build_and_write_shard(job: ShardJob, reading: DocumentReader, plan: ShardPlan) -> dict[str, int]:
    """Build one planned shard, write it to its folder, and return its counts."""
    counts = read_counts(write_shard(job.folder, plan.name, build_shard(reading, plan.documents)))
    give_memory_back()
    return counts


def build_shards_here(job: ShardJob, model: Model, plans: Iterable[ShardPlan]) -> Generator[Built, None, None]:
    """Build the planned shards that don't exist yet, in this process and thread. Yield all planned shards in order."""
    reading, threads = DocumentReader(model, job.layers, job.size, job.settings), torch.get_num_threads()
    for plan in plans:
        missing = not (job.folder / plan.name).is_dir()
        torch.set_num_threads(1)
        try:
            counts = build_and_write_shard(job, reading, plan) if missing else read_counts(job.folder / plan.name)
        finally:
            torch.set_num_threads(threads)
        yield plan, counts, missing


def build_shards_in_workers(job: ShardJob, plans: Iterable[ShardPlan], workers: int) -> Generator[Built, None, None]:
    """Build the planned shards that don't exist yet in `workers` processes. Yield all planned shards in order."""
    context = multiprocessing.get_context("spawn")  # a forked child of a process that ran kernels can hang
    reader, end = context.Pipe(duplex=False)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_shard_worker, initargs=(reader,))
    queue: deque[tuple[ShardPlan, Future[dict[str, int]] | None]] = deque()

    def next_built() -> Built:
        plan, future = queue.popleft()
        return plan, read_counts(job.folder / plan.name) if future is None else future.result(), future is not None

    try:
        for plan in plans:
            with _hidden_main_script():
                queue.append((plan, None if (job.folder / plan.name).is_dir() else pool.submit(_build_plan, job, plan)))
            while len(queue) > workers * AHEAD or (queue and queue[0][1] is None):
                yield next_built()
        while queue:
            yield next_built()
        pool.shutdown(wait=True)
    except BrokenProcessPool as error:
        raise RegardError(
            "a worker was ended before its shard was written (is there enough memory for all workers?): what is "
            "written stays, the same command goes on from there"
        ) from error
    finally:
        end.close()  # ends the workers: after an error, don't wait for their current shards
        pool.shutdown(wait=True, cancel_futures=True)
        reader.close()


_worker: dict[str, Any] = {}


def _start_shard_worker(pipe: Connection) -> None:
    """Set up a worker process that ends with its parent. Only the parent holds the other end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C

    def end_with_parent() -> None:
        wait([pipe])
        os._exit(1)  # leaves no incomplete shard: shards are written atomically

    threading.Thread(target=end_with_parent, daemon=True).start()


@contextmanager
def _hidden_main_script() -> Iterator[None]:
    """Hide the caller's script while worker processes start, so that they don't run it again.

    Ctrl-C is blocked in the workers from their start, because the parent handles it. The parent receives it at the end
    of the block.
    """
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    old_mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}) if hasattr(signal, "pthread_sigmask") else None
    try:
        yield
    finally:
        if old_mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, old_mask)
        sys.modules["__main__"] = script


def _build_plan(job: ShardJob, plan: ShardPlan) -> dict[str, int]:
    """Build a shard in a worker process. The first call loads the job's model."""
    if not _worker:
        torch.set_num_threads(1)
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        model = load(job.source, device="cpu")
        if digest_model(model) != job.digest:
            raise RegardError(f"model {job.source!r} is not the one of the store: its weights or tokenizer differ")
        _worker["reading"] = DocumentReader(model, job.layers, job.size, job.settings)
        # keeps the garbage collector from visiting the model's objects for every shard
        gc.freeze()
    return build_and_write_shard(job, _worker["reading"], plan)


MANIFEST_PAUSE = 50  # time between two writes of the manifest, in multiples of a write's duration


@dataclass(frozen=True)
class EmbedProgress:
    """The progress of `embed`: finished shards, their characters and tokens, and this run's tokens and seconds."""

    shards: int
    characters: int
    tokens: int
    new_tokens: int
    seconds: float


@dataclass(frozen=True)
class EmbedReport:
    """The result of `embed`: the index's folder and counts, and the inputs that could not be read.

    built, new_tokens: number of this run's shards and tokens. notes: about missing documents and skipped links.
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
    """Read texts and write an embedding index with each word's contextual embedding and attention statistics.

    To continue an interrupted run, start it again. The index is then the same as after an uninterrupted run. It keeps
    documents that are no longer among the inputs unless you pass `prune`.
    """
    import_from_corpus_extra("pyarrow")
    if model is not None and not isinstance(model, (str, os.PathLike, Model)):
        raise RegardError(f"embed: model: got a {type(model).__name__}, expected a name or a model from regard.load")
    started = time.monotonic()
    settings = settings or Settings()
    input_paths = [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    if workers is None:  # the number of cores that this process may use
        workers = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not is_whole(workers) or workers < 1:
        raise RegardError(f"workers: got {workers!r}, expected a whole number of processes above 0")
    if settings.lemma is not None:
        check_lemma_language(settings.lemma)
    store = Path(out).absolute()
    files_and_rejected = find_files_and_rejected(input_paths, follow_links=follow_links)
    check_outside_inputs(Path(out), input_paths, [file for file in files_and_rejected if isinstance(file, Path)])
    loaded = model if isinstance(model, Model) else load(model)
    source = None if isinstance(model, Model) or model is None else os.fspath(model)
    columns = columns or Columns()
    with opened_store_folder(store):
        manifest = begin_store(store, input_paths, loaded, source, settings, columns)
        stored = StoredTexts(store / SHARDS, [shard.name for shard in manifest.shards])
        check_listable(files_and_rejected, stored)
        notes: tuple[str, ...] = ()
        size = window_size(loaded, settings)
        # an absolute path, independent of a worker's working folder
        model_source = os.path.abspath(source) if source is not None and os.path.exists(source) else source
        job = ShardJob(store / SHARDS, model_source, manifest.model.digest, settings, manifest.layers, size)
        rejected: list[Rejected] = []
        inputs = read_documents(manifest.given, columns, folder=Path(manifest.folder), follow_links=follow_links)
        compared = DocumentCounts()
        documents = compare(inputs, stored, compared, by_id=columns.id is not None, prune=prune)
        plans = plan_shards(documents, manifest, rejected)
        if isinstance(model, Model):
            built = build_shards_here(job, loaded, plans)
        else:
            del loaded  # each worker loads the model itself
            built = build_shards_in_workers(job, plans, workers)
        unfinished = None if manifest.complete else manifest
        # Close the iterator, which an exception's traceback would keep alive, to end the workers before unfinished
        # shards are removed. A worker that still writes would leave an incomplete shard.
        with closing(built):
            shards, counts, new, new_tokens = _collect_built_shards(built, store, unfinished, started, progress)
        if not compared.read:
            raise RegardError(_message_of_no_document(rejected, input_paths))
        counts["quarantined"] = len(rejected)
        if compared.gone:
            missing = f"{compared.gone:,} missing document{'s' * (compared.gone != 1)} (first: {compared.first!r})"
            pronoun = "them" if compared.gone > 1 else "it"
            notes += (f"Removed {missing}." if prune else f"Kept {missing}. Pass `--prune` to remove {pronoun}.",)
            counts |= {} if prune else {"gone": compared.gone}
        quarantine = _write_quarantine(store, rejected)
        # write the manifest first: if the run is interrupted, it lists no removed shard
        finished = replace(manifest, shards=shards, counts=dict(counts), complete=True, quarantine=quarantine)
        finished.write(store)
        remove_other_shards(job.folder, {shard.name for shard in shards})
    if links := sum(entry.reason == LINK for entry in rejected):
        notes += (
            f"Skipped {links:,} link{'s' * (links > 1)}. Pass `--follow-links` (`follow_links=True`) to follow links.",
        )
    return EmbedReport(store, dict(counts), rejected, new, new_tokens, time.monotonic() - started, notes)


def _collect_built_shards(
    built: Iterable[Built],
    store: Path,
    unfinished: Manifest | None,
    started: float,
    progress: Callable[[EmbedProgress], None] | None,
) -> tuple[list[ShardSummary], Counter[str], int, int]:
    """Collect the built shards. Return their summaries, total counts, and the numbers of new shards and tokens.

    unfinished: the manifest of an index that was never complete. It is rewritten with the shards so far, so that they
    can be queried. It never lists fewer shards than before.
    """
    shards: list[ShardSummary] = []
    counts: Counter[str] = Counter()
    new, characters, new_tokens, next_write = 0, 0, 0, 0.0
    for plan, count, missing in built:
        sha256 = sha256_of_shard_file(store / SHARDS / plan.name / INDEX)
        shards.append(ShardSummary(plan.name, count["parts"], count["rows"], count["tokens"], sha256))
        counts.update(count)
        counts["documents"] += sum(document.start == 0 for document in plan.documents)
        new += missing
        characters += plan.characters
        new_tokens += count["tokens"] if missing else 0
        if unfinished is not None and len(shards) > len(unfinished.shards) and time.monotonic() >= next_write:
            write_began = time.monotonic()
            replace(unfinished, shards=shards).write(store)
            next_write = write_began + MANIFEST_PAUSE * (time.monotonic() - write_began)
        if progress is not None:
            seconds = time.monotonic() - started
            progress(EmbedProgress(len(shards), characters, counts["tokens"], new_tokens, seconds))
    return shards, counts, new, new_tokens


def _write_quarantine(store: Path, rejected: Sequence[Rejected]) -> str:
    """Write the inputs that could not be read to quarantine.parquet. Return the file's SHA-256."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(entry, name) for entry in rejected] for name in schema.quarantine().names}
    with whole(store / QUARANTINE) as file:
        pq.write_table(pa.table(columns, schema=schema.quarantine()), file)
    return sha256_of_shard_file(store / QUARANTINE)


def _message_of_no_document(rejected: Sequence[Rejected], paths: Sequence[str]) -> str:
    """Return the error message for inputs that have no readable document."""
    if not rejected:
        return f"no text in {', '.join(paths[:3])}: nothing was read"
    first = rejected[0]
    location = first.source if first.line is None else f"{first.source}:{first.line}"
    more = f", and {len(rejected) - 1} more" if len(rejected) > 1 else ""
    return f"no document could be read: {location}: {first.reason}{more}"


def begin_store(
    store: Path, paths: list[str], model: Model, source: str | None, settings: Settings, columns: Columns
) -> Manifest:
    """Write the manifest of a new index, or read an existing one and check that its settings match."""
    if model.tokenizer is None:
        raise RegardError(f"model {model.name!r} has no tokenizer, so it can't read texts")
    if model.pairs:
        raise RegardError(f"model {model.name!r} is an encoder-decoder: a corpus needs a model with a single stack")
    depth = count_layers(model)
    summary = ModelSummary(model.name, source or "", digest_model(model), depth, count_heads(model), state_width(model))
    layers = chosen_layers_to_store(settings.layers, depth, model.name)
    if not (store / NAME).exists():
        environment, names = describe_store_environment(), [columns.text, columns.id]
        manifest = Manifest(summary, settings.to_json(), environment, paths, layers, columns=names, folder=os.getcwd())
        manifest.write(store)
        return manifest
    existing = read_manifest(store)
    new_settings = settings.to_json()
    for label, old, new in (
        ("paths", existing.inputs, absolute_inputs(paths, os.getcwd())),
        ("model", existing.model.digest, summary.digest),
        *((f"setting {name}", existing.settings[name], new_settings[name]) for name in new_settings),
        ("layers", existing.layers, layers),
        ("columns", existing.columns, [columns.text, columns.id]),
    ):
        if old != new:
            raise RegardError(
                f"store {str(store)!r} was made with {label} {old}, not {new}: use another --out, or the same settings"
            )
    check_store_environment(existing.environment)
    remove_unfinished_shards(store / SHARDS)
    return existing
