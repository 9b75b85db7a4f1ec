"""Validate the settings of `regard embed` that determine the bytes of a shard."""

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.checks import from_zero, is_whole
from regard.errors import RegardError
from regard.text.words import word_spans

UNITS = ("words", "tokens")
DTYPES = ("float16", "float32")
WINDOW = 512  # tokens, or the model's limit if it is lower
OVERLAP = 4  # adjacent windows share 1/4 of their tokens
SHARD = 250_000  # characters of text in a shard: with MiniLM, 20 seconds on a single core and 50 MB of vectors


@dataclass(frozen=True)
class Where:
    """A filter of words: only those whose `field` ("word" or "lemma") is in `values` are stored."""

    field: str
    values: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> "Where":
        """Parse the value of `--where`, such as "word=bank" or "lemma=run,walk"."""
        field, equals, words = text.partition("=")
        values = tuple(sorted({lookup_key(word.strip()) for word in words.split(",") if word.strip()}))
        if field.strip() not in ("word", "lemma") or not equals or not values:
            raise RegardError(f"--where: got {text!r}, expected word=WORD[,WORD...] or lemma=WORD[,WORD...]")
        for value in values if field.strip() == "word" else ():
            parts = [value[start:end] for start, end in word_spans(value)]
            if parts != [value]:
                reason = f"its words are {', '.join(map(repr, parts))}" if parts else "it has no letter or digit"
                raise RegardError(f"--where: {value!r} is not one word as a store has them: {reason}")
        return Where(field.strip(), values)


@dataclass(frozen=True)
class Settings:
    """The settings of an embedding index: what to store for each word, and how to cut texts into windows.

    layers: numbers of the stored layers, None for only the last, () for all. The last layer's state is the contextual
    embedding. unit: "words" (the mean of a word's token vectors) or "tokens". where: a filter of words, None for all.
    lemma: simplemma's code of the language, such as "en", None for no lemmas. dtype: the vectors' type. statistics:
    whether to store attention statistics. window: tokens per window, None for the model's limit, at most 512. stride:
    tokens from one window's start to the next, None for 3/4 of a window. shard: characters of text in a shard.
    """

    layers: tuple[int, ...] | None = None
    unit: str = "words"
    where: Where | None = None
    lemma: str | None = None
    dtype: str = "float16"
    statistics: bool = True
    window: int | None = None
    stride: int | None = None
    shard: int = SHARD

    def __post_init__(self) -> None:
        """Check the settings' values and combinations. Raises RegardError for the first invalid one."""
        for name, allowed in (("unit", UNITS), ("dtype", DTYPES)):
            if getattr(self, name) not in allowed:
                raise RegardError(f"{name}: got {getattr(self, name)!r}, expected {' or '.join(allowed)}")
        for name in ("window", "stride", "shard"):
            size = getattr(self, name)
            if size is not None and (not is_whole(size) or size < 1):
                raise RegardError(f"{name}: got {size!r}, expected a whole number above 0")
        for option, value in (("--where", self.where), ("--lemma", self.lemma)):
            if value is not None and self.unit != "words":
                raise RegardError(f"{option} needs words: it doesn't work with {self.unit}")
        if self.where is not None and self.where.field == "lemma" and self.lemma is None:
            raise RegardError("--where lemma=… needs --lemma LANGUAGE, such as en: how lemmas are found")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as a dictionary for the manifest."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()} | {
            "where": None if self.where is None else [self.where.field, list(self.where.values)]
        }


def chosen_layers_to_store(layers: Sequence[int] | None, depth: int, name: str) -> list[int]:
    """Return the numbers of the layers to store, ascending. Negative ones in `layers` count from the end."""
    if layers is None:
        return [depth - 1]
    return sorted({from_zero("layer", layer, depth, f"{name} has") for layer in layers}) or list(range(depth))


def place_among_stored_layers(layers: Sequence[int], layer: int | None) -> int:
    """Return a layer's index among the stored layers. None and -1 mean the last stored layer."""
    if layer in (None, -1):
        return len(layers) - 1
    if layer not in layers:
        stored = ", ".join(map(str, layers))
        raise RegardError(f"layer {layer}: the store keeps {stored}; choose others with `regard embed --layers`")
    return layers.index(layer)


def lookup_key(word: str) -> str:
    """Return the lookup key of a word in an index: normalized (NFC) and case-folded."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", word).casefold())
