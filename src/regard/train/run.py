"""From files and settings to a trained model: what `regard train` does, as functions."""

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from regard.errors import RegardError
from regard.files import whole
from regard.nn.config import TransformerConfig
from regard.nn.folder import POINTER, read_model
from regard.nn.transformer import Transformer
from regard.text import tokenizers
from regard.text.tokenizers import read_tokenizer, tokenizer_files
from regard.text.tokens import check_text
from regard.train.batches import Data, NextToken, Translation, encode_pairs, encode_texts
from regard.train.checkpoint import Progress, load_checkpoint, remove_leftovers, save_checkpoint
from regard.train.data import Pair, hold_out, read_pairs, read_texts, watched_pair
from regard.train.folder_lock import FolderLock
from regard.train.loop import Report, optimiser_of, train
from regard.train.run_folder import (
    About,
    Log,
    check_folder,
    check_room,
    claim_folder,
    read_about,
    sources_of,
    training_device,
    write_about,
)
from regard.train.settings import Settings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True, eq=False)
class Ready:
    """A run that can be trained.

    notes: what a person should know before it starts. held: of pairs, those that are held out. watched: the sentence,
    or pair, whose traces are kept on the way. prompt: what samples begin with. claim: what keeps other processes out of
    the folder until the training ends; None for those of a team that write nothing.
    """

    run: Path
    model: Transformer
    tokenizer: Any
    data: Data
    optimiser: torch.optim.Optimizer
    settings: Settings
    progress: Progress
    notes: tuple[str, ...]
    held: tuple[Pair, ...] = ()
    watched: str | Pair | None = None
    prompt: str | None = None
    claim: FolderLock | None = None

    @property
    def parameters(self) -> int:
        """Count the numbers that are learned."""
        return sum(p.numel() for p in self.model.parameters())


def ready_for_texts(
    files: Sequence[Path],
    run: Path,
    settings: Settings,
    *,
    resume: bool = False,
    watch: str | None = None,
    prompt: str | None = None,
    lead: bool = True,
) -> Ready:
    """Prepare a run that learns to predict the next token of texts.

    watch: a sentence whose traces are kept on the way. prompt: what samples on the way begin with. lead: whether this
    process writes; of a team the first one does, when the others have yet to come here.

    Raises:
        RegardError: the texts, the settings or the folder are not what they need to be; nothing is trained then.
    """
    texts = read_texts(files)
    tokenizer = _tokenizer(run, settings, texts, frame="none")
    ids = encode_texts(tokenizer, texts)
    data = NextToken(ids, block=settings.block, batch=settings.batch, held_out=settings.held_out, seed=settings.seed)
    config = TransformerConfig.nanogpt(
        len(tokenizer), length=settings.block, layers=settings.layers, d_model=settings.d_model,
        heads=settings.heads, d_hidden=settings.d_hidden, dropout=settings.dropout,
    )  # fmt: skip
    notes = (f"{len(ids):,} tokens, {len(data.held):,} of them held out; {len(tokenizer):,} in the vocabulary",)
    for option, text, most in (("--watch", watch, settings.block), ("--prompt", prompt, settings.block - 1)):
        if text is not None:
            _fits(tokenizer, text, most, option)
    about = About("text", settings, config, sources_of(files), watch, prompt)
    return replace(_ready(run, about, tokenizer, data, notes, resume=resume, lead=lead), watched=watch, prompt=prompt)


def ready_for_pairs(
    file: Path,
    run: Path,
    settings: Settings,
    *,
    resume: bool = False,
    watch: str | None = None,
    prompt: str | None = None,
    lead: bool = True,
) -> Ready:
    """Prepare a run that learns to translate, from a file of tab-separated pairs.

    watch: a sentence that is held out, or one and its translation with a tab between. prompt: what is translated on the
    way, by default the first pair held out. lead: as `ready_for_texts`.

    Raises:
        RegardError: as `ready_for_texts`.
    """
    pairs = read_pairs(file)
    if settings.held_out < 1:
        settings = replace(settings, held_out=float(max(1, round(settings.held_out * len(pairs)))))
    training, held = hold_out(pairs, int(settings.held_out), settings.seed)
    tokenizer = _tokenizer(
        run, settings, [side for pair in training for side in (pair.source, pair.target)], frame="end"
    )
    kept, long = encode_pairs(tokenizer, training, settings.block)
    validating, _ = encode_pairs(tokenizer, held, 1 << 30)  # nothing is left out of what is measured
    if not kept:
        raise RegardError(f"block: given {settings.block}, every pair of {str(file)!r} is longer")
    start, filler = tokenizer.bos_token_id, tokenizer.pad_token_id
    data = Translation(kept, validating, start=start, filler=filler, batch=settings.batch, seed=settings.seed)
    config = TransformerConfig.translator(
        len(tokenizer), start, layers=settings.layers, d_model=settings.d_model, heads=settings.heads,
        d_hidden=settings.d_hidden, dropout=settings.dropout,
    )  # fmt: skip
    apart = len(pairs) - len(training) - len(held)
    notes: tuple[str, ...] = (
        f"{len(kept):,} pairs to train on, {len(held):,} held out; {len(tokenizer):,} in the vocabulary",
    )
    if apart:
        notes += (f"{apart:,} pairs share a sentence with one held out and are left out of both",)
    if long:
        notes += (f"{long:,} pairs are longer than {settings.block} tokens (block) and are left out of training",)
    watched = None if watch is None else watched_pair(watch, held, str(file))
    if prompt is not None:
        check_text(prompt, "--prompt")
    about = About("pairs", settings, config, sources_of([file]), watch, prompt)
    ready = _ready(run, about, tokenizer, data, notes, resume=resume, lead=lead)
    return replace(ready, held=tuple(held), watched=watched, prompt=prompt)


def run_training(
    ready: Ready, *, tell: Callable[[Report], None], look: Callable[[int], None] = lambda step: None, team: Any = None
) -> Progress:
    """Train a run to its end, or until Ctrl-C, which saves first; then others may have the folder.

    tell, look: as `train` calls them.
    """
    lead = team is None or team.rank == 0
    log = Log(ready.run, ready.progress.step) if lead else None

    def report_step(report: Report) -> None:
        if log is not None:
            log.add(report)
            tell(report)

    def save(progress: Progress) -> None:
        if lead:
            save_checkpoint(
                ready.run, ready.model, ready.tokenizer, ready.optimiser, progress, keep=ready.settings.keep
            )

    try:
        with interrupted() as stop:
            return train(
                ready.model, ready.data, ready.optimiser, ready.settings, ready.progress,
                save=save, tell=report_step, look=look if lead else lambda step: None, stop=stop, team=team,
            )  # fmt: skip
    finally:
        if ready.claim is not None:
            ready.claim.release()


@contextmanager
def interrupted() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C (and a polite kill) into a question that the loop asks after each update; a second one interrupts."""
    asked: list[int] = []

    def ask(number: int, _frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(number)

    kinds = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {kind: signal.signal(kind, ask) for kind in kinds}
    try:
        yield lambda: bool(asked)
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


def trained(run: Path) -> "tuple[Transformer, PreTrainedTokenizerFast | None, About]":
    """Read the newest model of a run, its tokenizer, and what the run is."""
    model, tokenizer = read_model(run)
    return model, tokenizer, read_about(run)


def _ready(
    run: Path, about: About, tokenizer: Any, data: Data, notes: tuple[str, ...], *, resume: bool, lead: bool
) -> Ready:
    """Make the folder, the model and the optimiser; filled from the newest checkpoint where the run goes on.

    Everything that can be refused is refused before the folder is written to, its lock aside.
    """
    settings = about.settings
    check_folder(run, about, resume=resume)
    check_room(run, about.config, settings)
    claim = claim_folder(run, about, resume=resume) if lead else None
    torch.manual_seed(settings.seed)
    model = Transformer(about.config)
    model.to(training_device())
    optimiser, progress = optimiser_of(model, settings), Progress()
    if (run / POINTER).is_file():
        progress, more = load_checkpoint(run, model, optimiser)
        if progress.step >= settings.steps:
            raise RegardError(
                f"--resume {str(run)!r}: all its {progress.step} steps are done; ask for more with --steps"
            )
        notes += (f"going on after step {progress.step}", *more)
    if lead:
        write_about(run, about)
        for name, text in tokenizer_files(tokenizer).items():
            with whole(run / name) as file:
                file.write_text(text, encoding="utf-8")
        remove_leftovers(run)
    return Ready(run, model, tokenizer, data, optimiser, settings, progress, notes, claim=claim)


def _fits(tokenizer: Any, text: str, most: int, option: str) -> None:
    """Refuse a text that the model could not read."""
    check_text(text, option)
    count = len(tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"])
    if count > most:
        raise RegardError(f"{option} {text[:40]!r}: it has {count} tokens, with this block it can have {most} at most")


def _tokenizer(run: Path, settings: Settings, texts: Sequence[str], *, frame: Any) -> Any:
    """Read the run's own tokenizer, or make one from the texts it trains on."""
    if (run / "run.json").is_file() and (run / "tokenizer.json").is_file():
        return read_tokenizer(run)
    size = settings.vocabulary
    if settings.tokenizer == "characters":
        return tokenizers.characters(texts, frame=frame)
    if settings.tokenizer == "words":
        return tokenizers.words(texts, most=size, frame=frame)
    if settings.tokenizer == "bytes":
        return tokenizers.byte_pairs(texts, size=size, frame=frame)
    return tokenizers.word_pieces(texts, size=size, lower=False, frame=frame)
