"""Prepare a training run from files and settings, and train it (`regard train`)."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from filelock import FileLock

from regard.errors import RegardError
from regard.nn.config import TransformerConfig
from regard.nn.folder import POINTER, write_tokenizer
from regard.nn.transformer import Transformer
from regard.text import tokenizers
from regard.text.tokenizers import read_tokenizer
from regard.text.tokens import check_text
from regard.train.data import (
    Data,
    NextToken,
    Pair,
    PairBatches,
    encode_pairs,
    hold_out,
    read_training_pairs,
    read_training_texts,
    repeated_training_line,
    repeated_training_text,
    watched_pair,
)
from regard.train.loop import ProcessGroup, StepMetrics, optimiser_of, train
from regard.train.run_files import LOSS, WATCH, Log, read_log
from regard.train.run_folder import (
    RunInfo,
    SourceFile,
    TrainingState,
    check_run_folder,
    check_space,
    describe_source,
    load_checkpoint,
    lock_folder,
    read_run_info,
    remove_run_leftovers,
    save_checkpoint,
    source_files,
    training_device,
    write_run_info,
)
from regard.train.settings import RunOptions, Settings, text_config
from regard.train.training import training_of_log

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, eq=False)
class TrainingRun:
    """A prepared training run: its folder, model, data, optimizer and state.

    notes: notes to show before the start. held: the held-out pairs. watched: the sentence or pair whose traces are
    saved during training. prompt: the start of samples. lock: the lock on the folder, held until training ends. None
    for a process that doesn't write.
    """

    folder: Path
    model: Transformer
    tokenizer: Any
    data: Data
    optimiser: torch.optim.Optimizer
    settings: Settings
    state: TrainingState
    notes: tuple[str, ...]
    held: tuple[Pair, ...] = ()
    watched: str | Pair | None = None
    prompt: str | None = None
    lock: FileLock | None = None

    @property
    def parameters(self) -> int:
        """Return the number of trainable parameters."""
        return sum(p.numel() for p in self.model.parameters())

    def plot(self) -> "Figure":
        """Draw the current loss curve with the validation loss. If there are many updates, draw means and ranges.

        Raises:
            RegardError: the run's log has no updates yet.
        """
        log = read_log(self.folder)
        if not log:
            raise RegardError(f"plot: {str(self.folder)!r} has no update in its log yet: train first")
        return training_of_log(log, self.model.config, self.settings).plot()


DEFAULT = RunOptions()


def prepare_text_run(
    files: Sequence[Path], folder: Path, settings: Settings, options: RunOptions = DEFAULT
) -> TrainingRun:
    """Prepare a run that trains on next-token prediction of texts.

    Args:
        files: the text files.
        folder: the folder of the run, which is new or has a run to resume.
        settings: the settings of the model and its training.
        options: other options of the run, such as a sentence to watch.

    Raises:
        RegardError: the texts, the settings or the folder aren't valid.
    """
    return _prepare_from_texts(read_training_texts(files), source_files(files), folder, settings, options)


def prepare_repeated_run(folder: Path, settings: Settings, options: RunOptions = DEFAULT) -> TrainingRun:
    """Prepare a run that trains on repeated random letters, drawn with the settings' seed.

    It watches a line of such letters unless you choose a sentence.

    Raises:
        RegardError: see `prepare_text_run`.
    """
    text = repeated_training_text(settings.seed)
    if options.watch is None:
        options = replace(options, watch=repeated_training_line(settings.seed, min(settings.block, 24)))
    return _prepare_from_texts([text], (describe_source("repeated letters", text.encode()),), folder, settings, options)


def _prepare_from_texts(
    texts: Sequence[str], sources: tuple[SourceFile, ...], folder: Path, settings: Settings, options: RunOptions
) -> TrainingRun:
    """Prepare a run from the contents of its texts."""
    tokenizer = _tokenizer_of_run(folder, settings, texts, frame="none")
    rows = tokenizer(list(texts), add_special_tokens=False, truncation=False, padding=False, verbose=False)["input_ids"]
    ids = torch.tensor([number for row in rows for number in row])
    data = NextToken(ids, block=settings.block, batch=settings.batch, held_out=settings.held_out, seed=settings.seed)
    config = text_config(len(tokenizer), settings)
    notes = (f"Data: {len(ids):,} tokens, {len(data.held):,} of them held out. Vocabulary: {len(tokenizer):,} tokens.",)
    for option, text, limit in (
        ("--watch", options.watch, settings.block),
        ("--prompt", options.prompt, settings.block - 1),
    ):
        if text is None:
            continue
        check_text(text, option)
        count = len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
        if count > limit:
            raise RegardError(f"{option} {text[:40]!r}: it has {count} tokens, but this block allows at most {limit}")
    info = RunInfo("text", settings, config, sources, options.watch, options.prompt)
    run = _prepare_run(folder, info, tokenizer, data, notes, options)
    return replace(run, watched=options.watch, prompt=options.prompt)


def prepare_pair_run(file: Path, folder: Path, settings: Settings, options: RunOptions = DEFAULT) -> TrainingRun:
    """Prepare a run that trains a translator on tab-separated sentence pairs.

    Args:
        file: the file of pairs.
        folder, settings, options: see `prepare_text_run`.

    Raises:
        RegardError: see `prepare_text_run`.
    """
    pairs = read_training_pairs(file)
    if settings.held_out < 1:
        settings = replace(settings, held_out=float(max(1, round(settings.held_out * len(pairs)))))
    training, held_out = hold_out(pairs, int(settings.held_out), settings.seed)
    tokenizer = _tokenizer_of_run(
        folder, settings, [side for pair in training for side in (pair.source, pair.target)], frame="end"
    )
    ids, long = encode_pairs(tokenizer, training, settings.block)
    validating, _ = encode_pairs(tokenizer, held_out, 1 << 30)  # no length limit in validation
    if not ids:
        raise RegardError(f"block: got {settings.block}, but every pair of {str(file)!r} is longer")
    start, filler = tokenizer.bos_token_id, tokenizer.pad_token_id
    data = PairBatches(ids, validating, start=start, filler=filler, batch=settings.batch, seed=settings.seed)
    config = TransformerConfig.translator(
        len(tokenizer), start, layers=settings.layers, d_model=settings.d_model, heads=settings.heads,
        d_hidden=settings.d_hidden, dropout=settings.dropout,
    )  # fmt: skip
    left_out = len(pairs) - len(training) - len(held_out)
    notes: tuple[str, ...] = (
        f"Data: {len(ids):,} training pairs, {len(held_out):,} held-out pairs. Vocabulary: {len(tokenizer):,} tokens.",
    )
    if left_out:
        notes += (f"Pairs left out because they share a sentence with a held-out pair: {left_out:,}.",)
    if long:
        notes += (f"Pairs left out of training because they have more than {settings.block} tokens (block): {long:,}.",)
    watched = None if options.watch is None else watched_pair(options.watch, held_out, str(file))
    if options.prompt is not None:
        check_text(options.prompt, "--prompt")
    info = RunInfo("pairs", settings, config, source_files([file]), options.watch, options.prompt)
    run = _prepare_run(folder, info, tokenizer, data, notes, options)
    return replace(run, held=tuple(held_out), watched=watched, prompt=options.prompt)


def run_training(
    run: TrainingRun,
    *,
    on_log: Callable[[StepMetrics], None],
    on_step_end: Callable[[int], None] = lambda step: None,
    processes: ProcessGroup | None = None,
) -> TrainingState:
    """Train a run to its end or until Ctrl-C, save it, and unlock its folder.

    on_log, on_step_end, processes: see `train`. When a run resumes, on_step_end is first called with the checkpoint's
    step, because the run may have been killed before that call.
    """
    is_main = processes is None or processes.rank == 0
    log = Log(run.folder, run.state.step) if is_main else None

    def log_step(metrics: StepMetrics) -> None:
        if log is not None:
            log.add(metrics)
            on_log(metrics)

    def save(state: TrainingState) -> None:
        if is_main:
            save_checkpoint(run.folder, run.model, run.tokenizer, run.optimiser, state, keep=run.settings.keep)

    try:
        with stop_training_on_interrupt() as stop:
            if is_main and run.state.step:
                on_step_end(run.state.step)
            return train(
                run.model, run.data, run.optimiser, run.settings, run.state, save=save, on_log=log_step,
                on_step_end=on_step_end if is_main else lambda step: None, stop=stop, processes=processes,
            )  # fmt: skip
    finally:
        if run.lock is not None:
            run.lock.release()


@contextmanager
def stop_training_on_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns True after Ctrl-C, SIGTERM or SIGHUP. A second signal raises KeyboardInterrupt."""
    received: list[int] = []

    def on_signal(number: int, _frame: Any) -> None:
        if received:
            raise KeyboardInterrupt
        received.append(number)

    # Job schedulers send SIGTERM and closing terminals SIGHUP, which stays ignored under nohup.
    signals = [signal.SIGINT, signal.SIGTERM]
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signals.append(signal.SIGHUP)
    if threading.current_thread() is not threading.main_thread():
        signals = []
    old_handlers = {signal_number: signal.signal(signal_number, on_signal) for signal_number in signals}
    try:
        yield lambda: bool(received)
    finally:
        for signal_number, handler in old_handlers.items():
            signal.signal(signal_number, handler)


def _prepare_run(
    folder: Path, info: RunInfo, tokenizer: Any, data: Data, notes: tuple[str, ...], options: RunOptions
) -> TrainingRun:
    """Create the folder, model and optimizer of a run, or restore them from its newest checkpoint.

    All checks are made before anything except the lock is written to the folder.
    """
    settings = info.settings
    check_run_folder(folder, info, resume=options.resume)
    check_space(folder, info.config, settings)
    lock = lock_folder(folder, info, resume=options.resume) if options.is_main else None
    torch.manual_seed(settings.seed)
    model = Transformer(info.config)
    model.to(training_device())
    optimiser, state = optimiser_of(model, settings), TrainingState()
    if (folder / POINTER).is_file():
        state, more = load_checkpoint(folder, model, optimiser)
        if state.step > settings.steps or (state.step == settings.steps and _is_finished(folder, info)):
            raise RegardError(
                f"--resume {str(folder)!r}: all of its {state.step} steps are done: ask for more with --steps"
            )
        last = state.step == settings.steps
        notes += ("All steps are done. Finishing the run." if last else f"Resuming after step {state.step}.", *more)
        if (old_rate := read_run_info(folder).settings.rate) != settings.rate:
            notes += (f"The rate is now {settings.rate} instead of {old_rate}.",)
    if options.is_main:
        write_run_info(folder, info)
        write_tokenizer(folder, tokenizer)
        remove_run_leftovers(folder)
    return TrainingRun(folder, model, tokenizer, data, optimiser, settings, state, notes, lock=lock)


def _is_finished(folder: Path, info: RunInfo) -> bool:
    """Return whether a run's loss curve is up to date and the watched trace of the last step exists."""
    step = info.settings.steps
    try:
        has_plot = (folder / LOSS).stat().st_mtime >= (folder / POINTER).stat().st_mtime
    except OSError:
        return False
    return has_plot and (info.watch is None or (folder / WATCH / f"step-{step:06d}.safetensors").is_file())


def _tokenizer_of_run(
    folder: Path, settings: Settings, texts: Sequence[str], *, frame: tokenizers.Frame
) -> "PreTrainedTokenizerFast":
    """Read the run's tokenizer, or train a new one on its texts."""
    if (folder / "run.json").is_file() and (folder / "tokenizer.json").is_file():
        return read_tokenizer(folder)
    size = settings.vocabulary
    if settings.tokenizer == "characters":
        return tokenizers.characters(texts, frame=frame)
    if settings.tokenizer == "words":
        return tokenizers.words(texts, most=size, frame=frame)
    if settings.tokenizer == "bytes":
        return tokenizers.byte_pairs(texts, size=size, frame=frame)
    return tokenizers.word_pieces(texts, size=size, lower=False, frame=frame)
