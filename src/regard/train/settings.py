"""Define and check the settings of a training run, which come from a file, from options or from both."""

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_type_hints

from regard.checks import kind_needed, near_name
from regard.errors import RegardError
from regard.files import check_readable
from regard.nn.config import TransformerConfig


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything that determines the result of a run, except its texts. Equal settings lead to equal results.

    tokenizer: "characters", "words", "bytes" (byte-level BPE) or "pieces" (WordPiece). vocabulary: its maximum size,
        except for characters.
    layers, d_model, heads, d_hidden: sizes of the model. block: maximum tokens in a training example. positions: the
        language model's encoding: "learned", "sinusoidal", "rotary" or "alibi". All but "learned" allow longer texts.
    dropout: the dropout probability.
    steps: number of updates. accumulate: micro-batches per update. batch: examples per micro-batch. For pairs, the
        maximum number of tokens on the longer side, including padding.
    rate, least_rate: the learning rate after warm-up, and at the end of the cosine (Loshchilov and Hutter 2017).
        warmup: steps of linear warm-up. decay, beta1, beta2: of AdamW (Loshchilov and Hutter 2019). clip: maximum norm
        of the gradient, 0 for none. smoothing: label smoothing (Szegedy et al. 2016).
    held_out: the fraction at the end of a text that is held out for validation. For pairs, their number if 1 or more.
    evaluate_every, save_every, sample_every, watch_every: intervals in steps, 0 for never. All are done at the end.
    keep: the number of checkpoints to keep. dtype: "bfloat16" for mixed precision, with weights in float32.
    compile: whether to use torch.compile. seed: the seed for initial weights, batches and dropout.
    """

    tokenizer: Literal["characters", "words", "bytes", "pieces"] = "characters"
    vocabulary: int = 8000
    layers: int = 4
    d_model: int = 128
    heads: int = 4
    d_hidden: int | None = None
    block: int = 64
    positions: Literal["learned", "sinusoidal", "rotary", "alibi"] = "learned"
    dropout: float = 0.0
    steps: int = 2000
    batch: int = 12
    accumulate: int = 1
    rate: float = 3e-3
    least_rate: float = 3e-4
    warmup: int = 100
    decay: float = 0.1
    beta1: float = 0.9
    beta2: float = 0.99
    clip: float = 1.0
    smoothing: float = 0.0
    held_out: float = 0.1
    evaluate_every: int = 250
    save_every: int = 250
    sample_every: int = 500
    watch_every: int = 100
    keep: int = 2
    dtype: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    seed: int = 1337

    def __post_init__(self) -> None:
        for name, kind in get_type_hints(type(self)).items():
            value = getattr(self, name)
            if expected := kind_needed(value, kind):
                raise RegardError(f"{name}: got {value!r}, expected {expected}")
        lowest = {"vocabulary": 2, "layers": 1, "d_model": 1, "heads": 1, "block": 2, "steps": 1, "batch": 1, "keep": 1}
        lowest |= {"accumulate": 1} | dict.fromkeys(("warmup", "seed", "decay", "clip"), 0)
        lowest |= dict.fromkeys(("evaluate_every", "save_every", "sample_every", "watch_every"), 0)
        for name, number in lowest.items():
            if getattr(self, name) < number:
                raise RegardError(f"{name}: got {getattr(self, name)}, expected {number} or more")
        if self.seed >= 1 << 32:
            raise RegardError(f"seed: got {self.seed}, expected a number below 2^32")
        for name in ("dropout", "smoothing", "beta1", "beta2"):
            if not 0.0 <= getattr(self, name) < 1.0:
                raise RegardError(f"{name}: got {getattr(self, name)}, expected a number from 0 to below 1")
        for name in ("rate", "least_rate", "held_out"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise RegardError(f"{name}: got {getattr(self, name)}, expected a number above 0")

    @classmethod
    def for_pairs(cls, **changes: Any) -> "Settings":
        """Return settings for training a translator of short sentences on a small machine."""
        sizes = {"tokenizer": "bytes", "layers": 3, "d_model": 192, "heads": 6, "d_hidden": 512, "block": 64}
        sizes |= {"batch": 2048, "dropout": 0.1, "smoothing": 0.1, "rate": 2e-3, "least_rate": 2e-5, "warmup": 400}
        sizes |= {"steps": 8000, "decay": 0.01, "beta2": 0.98, "held_out": 2000.0, "vocabulary": 6000}
        return cls(**{**sizes, **changes})

    @classmethod
    def for_repeated(cls, **changes: Any) -> "Settings":
        """Return settings with which an induction head forms within a minute on a small machine."""
        sizes = {"layers": 2, "d_model": 64, "heads": 4, "d_hidden": 64, "positions": "alibi"}
        sizes |= {"block": 32, "batch": 32, "steps": 1200, "warmup": 50, "decay": 0.0, "beta2": 0.98}
        sizes |= {"watch_every": 50, "save_every": 500}
        return cls(**{**sizes, **changes})

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of update `step`, from 0: linear warm-up, then a cosine to least_rate."""
        if step < self.warmup:
            return self.rate * (step + 1) / self.warmup
        progress = min(1.0, (step - self.warmup) / max(1, self.steps - self.warmup))
        return self.least_rate + 0.5 * (1 + math.cos(math.pi * progress)) * (self.rate - self.least_rate)

    def as_json(self) -> dict[str, str | int | float | bool | None]:
        """Return the settings as stored in run.json."""
        return asdict(self)

    def differences(self, other: "Settings") -> list[str]:
        """Return the names of differing settings that must be equal when a run resumes."""
        free = {"rate", "least_rate", "steps", "evaluate_every", "save_every", "sample_every", "watch_every", "keep"}
        values, others = asdict(self), asdict(other)
        return [name for name in values if name not in free and values[name] != others[name]]


@dataclass(frozen=True)
class RunOptions:
    """Options for starting a run: resume it, watch a sentence, generate samples from a prompt.

    resume: continue the folder's run. watch: a sentence whose traces are saved during training. For pairs, a held-out
    sentence, or a sentence and its translation separated by a tab. prompt: the start of samples during training. For
    pairs, the sentence to translate (default: the first held-out pair). is_main: whether this process writes files. If
    there are several processes, only the first does, and the others wait until it has created the folder.
    """

    resume: bool = False
    watch: str | None = None
    prompt: str | None = None
    is_main: bool = True


def with_changes(settings: Settings, changes: Mapping[str, Any]) -> Settings:
    """Replace settings by name.

    Raises:
        RegardError: a name isn't a setting, or a value is wrong.
    """
    names = [field.name for field in fields(Settings)]
    for name in sorted(set(changes) - set(names)):
        match = near_name(name, names)
        hint = f"Did you mean {match!r}?" if match else f"Settings are {', '.join(names)}."
        raise RegardError(f"settings: {name!r} isn't a setting. {hint}")
    return replace(settings, **changes)


def text_config(vocabulary: int, settings: Settings) -> TransformerConfig:
    """Return the model config of a next-token run. Raises RegardError if sizes don't fit."""
    length = settings.block if settings.positions == "learned" else None  # other encodings have no table
    return TransformerConfig.nanogpt(
        vocabulary, length=length, layers=settings.layers, d_model=settings.d_model, heads=settings.heads,
        d_hidden=settings.d_hidden, dropout=settings.dropout, positions=settings.positions,
    )  # fmt: skip


def read_training_settings(file: Path) -> dict[str, object]:
    """Read training settings by name from a .toml or .json file.

    Raises:
        RegardError: the file can't be read or parsed.
    """
    check_readable(file, "--config")
    try:
        text = file.read_text(encoding="utf-8")
        content = tomllib.loads(text) if file.suffix.lower() == ".toml" else json.loads(text)
    except ValueError as error:  # raised for both formats, and for bytes that aren't UTF-8
        raise RegardError(f"--config {str(file)!r} isn't valid TOML or JSON: {str(error).splitlines()[0]}") from error
    if not isinstance(content, dict):
        raise RegardError(f"--config {str(file)!r}: got {type(content).__name__}, expected names with values")
    return content
