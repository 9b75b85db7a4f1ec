"""A training run: its folder, what stands in it, and how it starts, goes on and stops.

RUN/run.json        settings, the model's config, and which texts (their sizes and SHA-256)
RUN/log.jsonl       a line an update: step, loss, validation, rate, tokens, seconds
RUN/loss.png        the loss curve
RUN/samples.txt     what the model writes on the way
RUN/checkpoints/, latest.json    see nn/folder.py
RUN/watch/          traces of the watched sentence, a file a step
RUN/.lock           locked while a process trains into the folder
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from filelock import FileLock

from regard import files
from regard.errors import RegardError
from regard.files import read_json, whole
from regard.memory import format_bytes, require_memory
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.train.checkpoint import size_of_checkpoint
from regard.train.run_files import RUN_JSON, check_place_for_run
from regard.train.settings import Settings

FORMAT, VERSION = "training run", 1


@dataclass(frozen=True)
class SourceFile:
    """A file that was trained on, known by its content."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True)
class RunInfo:
    """What a run is: written once, held against whoever wants to go on with it."""

    kind: str
    settings: Settings
    config: TransformerConfig
    sources: tuple[SourceFile, ...]
    watch: str | None = None
    prompt: str | None = None


def source_of(name: str, content: bytes) -> SourceFile:
    """Describe content by its size and SHA-256."""
    return SourceFile(name, len(content), hashlib.sha256(content).hexdigest())


def source_files(files: Sequence[Path]) -> tuple[SourceFile, ...]:
    """Describe files by their sizes and SHA-256."""
    return tuple(source_of(file.name, file.read_bytes()) for file in files)


def check_run_folder(run: Path, info: RunInfo, *, resume: bool) -> None:
    """Raise RegardError for a run's folder that cannot be begun or gone on with; nothing is written."""
    if not check_place_for_run(run, resume=resume):
        return
    there = read_run_info(run)
    if there.kind != info.kind:
        raise RegardError(f"--resume {str(run)!r}: it is a run of kind {there.kind!r}, asked for is {info.kind!r}")
    for name in there.settings.differences(info.settings):
        had, given = getattr(there.settings, name), getattr(info.settings, name)
        raise RegardError(f"--resume {str(run)!r}: its {name} is {had!r}, given is {given!r}: name another folder")
    if [source.sha256 for source in there.sources] != [source.sha256 for source in info.sources]:
        raise RegardError(f"--resume {str(run)!r}: it was trained on other texts than those given: name another folder")
    if there.config != info.config:
        raise RegardError(f"--resume {str(run)!r}: its model has another config: name another folder")


def lock_folder(run: Path, info: RunInfo, *, resume: bool) -> FileLock:
    """Make a run's folder where there is none, and lock it for this process, as long as the lock is kept."""
    try:
        run.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RegardError(f"--out {str(run)!r} cannot be made: {error.strerror or error}") from error
    named = f"--out {str(run)!r}"
    taken = f"{named}: another regard train is writing to it: wait for it to end, stop it, or name another folder"
    lock = files.lock_folder(run, taken, f"{named} cannot be written to")
    try:
        check_run_folder(run, info, resume=resume)
    except RegardError:
        lock.release()
        raise
    return lock


def write_run_info(run: Path, info: RunInfo) -> None:
    """Write run.json: what the run is. Raises RegardError where the file system refuses."""
    record = {
        "regard": FORMAT, "version": VERSION, "kind": info.kind, "settings": info.settings.as_json(),
        "model": info.config.as_json(), "sources": [vars(source) for source in info.sources], "watch": info.watch,
        "prompt": info.prompt,
    }  # fmt: skip
    with whole(run / RUN_JSON) as file:
        file.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read_run_info(run: Path) -> RunInfo:
    """Read run.json: what the run is."""
    file = run / RUN_JSON
    if not file.exists():
        raise RegardError(f"{str(run)!r} is no training run: it has no {RUN_JSON}")
    record = read_json(file)
    try:
        if record["regard"] != FORMAT or record["version"] > VERSION:
            raise RegardError(f"{str(file)!r} is of another format or a newer version: update regard")
        sources = tuple(SourceFile(**source) for source in record["sources"])
        config = TransformerConfig.from_json(record["model"], repr(str(file)))
        return RunInfo(
            record["kind"], Settings(**record["settings"]), config, sources, record["watch"], record.get("prompt")
        )
    except RegardError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise RegardError(f"{str(file)!r} is damaged: it is not what a run writes") from error


def check_space(run: Path, config: TransformerConfig, settings: Settings) -> None:
    """Refuse a run whose checkpoints or memory there is no room for, before its model is made."""
    device, helps = training_device(), "a smaller batch, block or model"
    what = f"training {_tokens_at_once(config, settings):,} tokens at a time"
    require_memory(training_memory(config, settings), device, what, helps)
    with torch.device("meta"):
        model = Transformer(config)
    if device.type != "cpu":  # the model is made on the CPU, and each checkpoint gathered there
        require_memory(size_of_checkpoint(model), torch.device("cpu"), "a checkpoint that is written", helps)
    need = (settings.keep + 1) * size_of_checkpoint(model)
    there = next(folder for folder in (run, *run.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(there).free
    if need > free:
        sizes = f"need {format_bytes(need)}, the disk has {format_bytes(free)}"
        raise RegardError(f"--out {str(run)!r}: {settings.keep + 1} checkpoints {sizes}")


def training_device() -> torch.device:
    """Choose the device of training: CUDA where there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def training_memory(config: TransformerConfig, settings: Settings) -> int:
    """Estimate the bytes that training takes on its device: weights, gradients, optimiser, and what backward needs."""
    stacks = 2 if config.kind == "encoder-decoder" else 1
    width, hidden = config.d_model, config.hidden_width
    layer = 4 * width * width + (3 if config.gated else 2) * width * hidden
    weights = 16 * (config.vocabulary * width + stacks * config.layers * layer)
    each = stacks * config.layers * (10 * width + 2 * hidden) + 3 * config.vocabulary
    return weights + 4 * _tokens_at_once(config, settings) * each


def _tokens_at_once(config: TransformerConfig, settings: Settings) -> int:
    """Count the tokens of a batch; of pairs, settings count tokens themselves."""
    return settings.batch * (1 if config.kind == "encoder-decoder" else settings.block)
