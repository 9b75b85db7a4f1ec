"""Read any amount of text once and keep every word's embedding, and what its attention did, in a store."""

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from regard.checks import is_whole
from regard.corpus import schema
from regard.corpus.cut_windows import window_size
from regard.corpus.document import Columns, Rejected
from regard.corpus.documents import read_documents
from regard.corpus.environment import check_environment, describe_environment, digest_model
from regard.corpus.extra import needed
from regard.corpus.find_files import find_files
from regard.corpus.manifest import NAME, Manifest, ModelSummary, ShardSummary, read_manifest
from regard.corpus.plan_shards import ShardPlan, plan_shards
from regard.corpus.settings import Settings, chosen_layers
from regard.corpus.shard import remove_unfinished
from regard.corpus.words import check_language
from regard.corpus.workers import Built, Job, build_here, build_in_processes
from regard.errors import RegardError
from regard.files import whole
from regard.locks import held_elsewhere
from regard.models.load import load
from regard.models.model import Model
from regard.models.states import count_heads, count_layers, state_width

LOCK = ".lock"
Runner = Callable[[Job, Iterable[ShardPlan]], Iterator[Built]]


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
    """What `embed` did. counts: of everything in the store and of what was left out. rejected: in quarantine.

    built, new_tokens: shards that were built in this run and their tokens; the others were there.
    """

    store: Path
    counts: dict[str, int]
    rejected: list[Rejected]
    built: int
    new_tokens: int
    seconds: float


def embed(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] | Model | None = None,
    settings: Settings | None = None,
    columns: Columns | None = None,
    workers: int | None = None,
    runner: Runner | None = None,
    progress: Callable[[EmbedProgress], None] | None = None,
) -> EmbedReport:
    """Read texts and write a store of their words' contextual embeddings and attention.

    A run that was ended anywhere goes on where it was when it is started again, and ends with the same bytes.

    Args:
        paths: files, folders and patterns: .txt, .jsonl, .csv and .parquet, also .gz and .zst; "-" is standard input.
        out: the store's folder; one that is there has to be of the same paths, model and settings.
        model: as `regard.load` takes it, or a model that is loaded: then all is done in this process.
        settings: what is kept. columns: of tables, where their texts and ids are.
        workers: processes, one thread each; None for one a core.
        runner: what builds the shards instead of local processes, such as `regard.corpus.ray_runner.on_ray`.
        progress: called after each shard.

    Raises:
        RegardError: nothing to read, a model that cannot be read so, a store of something else, or no room.
    """
    needed("pyarrow")
    started = time.monotonic()
    settings = settings or Settings()
    given = [os.fspath(each) for each in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]
    workers = len(os.sched_getaffinity(0)) if workers is None else workers
    if not is_whole(workers) or workers < 1:
        raise RegardError(f"workers: given {workers!r}, needs a whole number of processes above 0")
    if settings.lemma is not None:
        check_language(settings.lemma)
    for path in find_files(given):
        if str(path) != "-" and Path(out).resolve() in path.resolve().parents:
            raise RegardError(
                f"--out: the store {str(out)!r} holds {str(path)!r}, which is to be read: give another one"
            )
    store = Path(out).absolute()
    fresh = not (store / NAME).exists()
    loaded = model if isinstance(model, Model) else load(model)
    source = None if isinstance(model, Model) or model is None else os.fspath(model)
    if source is not None and os.path.exists(source):
        source = os.path.abspath(source)  # workers and whoever opens the store may be elsewhere
    _make_folder(store)
    with _locked(store):
        manifest = _begin(store, given, loaded, source, settings)
        layers = tuple(manifest.layers)
        size = window_size(loaded, settings)
        summary = manifest.model
        job = Job(store / "shards", source, summary.digest, settings, layers, size, manifest.environment)
        rejected: list[Rejected] = []
        plans = plan_shards(read_documents(given, columns or Columns()), manifest, rejected)
        if runner is not None:
            built = runner(job, plans)
        elif isinstance(model, Model):
            built = build_here(job, loaded, plans)
        else:
            del loaded  # the workers have their own
            built = build_in_processes(job, plans, workers)
        shards, counts, new, new_tokens = _gather(built, started, progress)
        if not shards:
            if fresh:
                _unmake_folder(store)
            raise RegardError(_nothing(rejected, given))
        counts["quarantined"] = len(rejected)
        _write_quarantine(store, rejected)
        _remove_others(job.folder, {shard.name for shard in shards})
        replace(manifest, shards=shards, counts=dict(counts), complete=True).write(store)
    return EmbedReport(store, dict(counts), rejected, new, new_tokens, time.monotonic() - started)


def _gather(
    built: Iterable[Built], started: float, progress: Callable[[EmbedProgress], None] | None
) -> tuple[list[ShardSummary], Counter[str], int, int]:
    """The shards as they come, what they hold in all, how many are new, and these tokens."""
    shards: list[ShardSummary] = []
    counts: Counter[str] = Counter()
    new, characters, new_tokens = 0, 0, 0
    for plan, own, missing in built:
        shards.append(ShardSummary(plan.name, own["parts"], own["rows"], own["tokens"]))
        counts.update(own)
        counts["documents"] += sum(each.start == 0 for each in plan.documents)
        new += missing
        characters += plan.characters
        new_tokens += own["tokens"] if missing else 0
        if progress is not None:
            seconds = time.monotonic() - started
            progress(EmbedProgress(len(shards), characters, counts["tokens"], new_tokens, seconds))
    return shards, counts, new, new_tokens


def _begin(store: Path, paths: list[str], model: Model, source: str | None, settings: Settings) -> Manifest:
    """The manifest of a new store, or that of a store that is there, where it is of the same."""
    if model.tokenizer is None:
        raise RegardError(f"model {model.name!r} has no tokenizer: texts cannot be read with it")
    if model.pairs:
        raise RegardError(f"model {model.name!r} is an encoder-decoder: a corpus is read with a model of one stack")
    depth = count_layers(model)
    summary = ModelSummary(model.name, source or "", digest_model(model), depth, count_heads(model), state_width(model))
    layers = chosen_layers(settings.layers, depth, model.name)
    if not (store / NAME).exists():
        manifest = Manifest(summary, settings.to_json(), describe_environment(), paths, layers)
        check_environment(manifest.environment)
        manifest.write(store)
        return manifest
    held = read_manifest(store)
    wanted = settings.to_json()
    changed = [name for name in wanted if wanted[name] != held.settings.get(name)]
    others = {
        "other paths": held.inputs != paths,
        f"other settings ({', '.join(changed)})": bool(changed),
        "another model": held.model.digest != summary.digest,
    }
    for what, differs in others.items():
        if differs:
            raise RegardError(
                f"store {str(store)!r} was made with {what}: give another --out, or what it was made with"
            )
    check_environment(held.environment)
    remove_unfinished(store / "shards")
    return replace(held, shards=[], counts={}, complete=False)


def _make_folder(store: Path) -> None:
    """Make the store's folder where it is not there.

    Raises:
        RegardError: it is a file, holds something else than a store, or cannot be made or written to.
    """
    try:
        if store.is_dir() and not (store / NAME).exists():
            others = [path.name for path in store.iterdir() if path.name not in (LOCK, "shards")]
            if others:
                raise RegardError(f"--out: the folder {str(store)!r} holds something else than a store ({others[0]!r})")
        if store.exists() and not store.is_dir():
            raise RegardError(f"--out: {str(store)!r} is a file, needed is a folder")
        if not store.parent.is_dir():
            raise RegardError(f"--out: cannot make {str(store)!r}, there is no folder {str(store.parent)!r}")
        (store / "shards").mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"--out: cannot write {str(store)!r}: {error.strerror or error}") from error


def _unmake_folder(store: Path) -> None:
    """Remove a store in which nothing was written but its beginning."""
    for path in (store / NAME, store / LOCK):
        path.unlink(missing_ok=True)
    for folder in (store / "shards", store):
        with suppress(OSError):  # the folder was there before, with something else in it
            folder.rmdir()


@contextmanager
def _locked(store: Path) -> Iterator[None]:
    """Keep other runs out of a store inside the block.

    Raises:
        RegardError: another run is writing into it.
    """
    try:
        handle = os.open(store / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise RegardError(f"--out: cannot write {str(store)!r}: {error.strerror or error}") from error
    try:
        if held_elsewhere(handle):
            raise RegardError(f"store {str(store)!r} is being written by another run: wait until it has ended")
        yield
    finally:
        os.close(handle)


def _write_quarantine(store: Path, rejected: Sequence[Rejected]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [getattr(each, name) for each in rejected] for name in schema.quarantine().names}
    with whole(store / "quarantine.parquet") as file:
        pq.write_table(pa.table(columns, schema=schema.quarantine()), file)


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove the shards of texts that were changed or taken away since an earlier run of the same paths."""
    for path in folder.iterdir():
        if path.is_dir() and path.name not in names:
            shutil.rmtree(path)


def _nothing(rejected: Sequence[Rejected], paths: Sequence[str]) -> str:
    """What is said where no document could be read."""
    if not rejected:
        return f"no text in {', '.join(paths[:3])}: nothing was read"
    first = rejected[0]
    place = first.source if first.line is None else f"{first.source}:{first.line}"
    more = f", and {len(rejected) - 1} more" if len(rejected) > 1 else ""
    return f"no document could be read: {place}: {first.reason}{more}"
