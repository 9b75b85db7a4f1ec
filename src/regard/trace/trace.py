"""One text, one `Trace`: everything its forward pass did, by name. Whatever a person looks at is a function of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.text.tokens import Token
from regard.text.words import Word, find_word
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.layer_subset import Layers, LayerSubset

Vectors = Float[Tensor, "L M"]


@dataclass
class Status:
    """How a trace came about and how far it can be trusted.

    difference: largest absolute difference between weights here and what compared_with names, on the sampled rows;
    None where the model offers nothing to compare with. Where that is the model's own attention, it was given the
    queries and keys of this pass: how far these are from a plain pass's is told by docs/families.md, and by a note
    where the linear maps were not PyTorch's. embedding_difference: largest absolute difference between the sum of the
    embedding parts and what the model adds up, None where that was not found. Both, and rows_compared, are of all texts
    that ran with this one. seconds: this text's share of the time they took.
    """

    model: str
    kernels: tuple[str, ...]
    device: str
    dtype: str
    difference: float | None
    rows_compared: int
    embedding_difference: float | None
    unknown: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0
    compared_with: str = ""


LAYERED = ("attention", "values", "cross", "cross_values", "attention_outputs", "cross_attention_outputs")


@dataclass(eq=False)
class Trace:
    """What a model did to one text, without padding, however many were batched.

    learned, positional, segment: what is added up to make the input, None where the model has no such part.
    input: their sum, as it enters the first norm. hidden_states[n] enters layer n, hidden_states[n + 1] leaves it.
    contextual: the model's last hidden state. logits: (L, V) where the model has a language head. attention[n]: weights
    (H, L, S) of layer n. values[n]: value vectors (G, S, E) of layer n. cross[n]: of a decoder, its weights on the
    encoder's tokens.
    names: how token ids are spelled that stand in no text, such as those that logits speak of, where that is known.
    Where some layers alone were kept or saved there is a `LayerSubset` for each of these, which refuses the others.
    """

    text: str
    tokens: tuple[Token, ...]
    learned: Float[Tensor, "L W"] | None
    positional: Float[Tensor, "L W"] | None
    segment: Float[Tensor, "L W"] | None
    input: Float[Tensor, "L W"] | None
    hidden_states: tuple[Vectors, ...] | LayerSubset
    contextual: Vectors
    logits: Float[Tensor, "L V"] | None
    attention: tuple[AttentionMap, ...] | LayerSubset
    values: tuple[Float[Tensor, "G S E"] | None, ...] | LayerSubset
    status: Status = field(repr=False)
    cross: tuple[AttentionMap, ...] | LayerSubset = ()
    cross_values: tuple[Float[Tensor, "Gc Sc Ec"] | None, ...] | LayerSubset = ()
    attention_outputs: tuple[AttentionOutput | UnverifiedOutput, ...] | LayerSubset = ()
    cross_attention_outputs: tuple[AttentionOutput | UnverifiedOutput, ...] | LayerSubset = ()
    names: Callable[[int], str] | None = field(default=None, repr=False)

    def __setattr__(self, name: str, value: Any) -> None:
        """Have what is told layer by layer name its range where a number is beyond it."""
        object.__setattr__(self, name, Layers.of(name, value) if name in LAYERED and type(value) is tuple else value)

    def __repr__(self) -> str:
        layers = str(len(self.attention))
        if isinstance(self.attention, LayerSubset):
            layers = f"{len(self.attention.kept)} of {layers}"
        return f"Trace({self.text!r}, {len(self.tokens)} tokens, {layers} layers, {self.status.model})"

    @property
    def sides(self) -> "tuple[Trace, ...]":
        """The trace itself, alone: what `PairTrace.sides` is of a pair."""
        return (self,)

    def word(self, word: str) -> list[Word]:
        """Every occurrence of a word with its tokens and characters.

        Raises:
            RegardError: the word is not in the text; the nearest words are named.
        """
        return find_word(self.text, self.tokens, word)

    def save(
        self,
        file: str | Path,
        *,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        dtype: torch.dtype | str | None = None,
        attention_outputs: bool = False,
    ) -> None:
        """Write the trace to one file that `regard.open` reads without the model: see `regard.save`."""
        from regard.trace.file import save  # which needs this class

        save(self, file, layers=layers, heads=heads, dtype=dtype, attention_outputs=attention_outputs)


@dataclass
class PairTrace:
    """What an encoder-decoder did to a text and its target: a trace of each; decoder.cross[n] looks at the encoder."""

    encoder: Trace
    decoder: Trace

    @property
    def sides(self) -> tuple[Trace, ...]:
        """(encoder, decoder)."""
        return self.encoder, self.decoder

    @property
    def status(self) -> Status:
        """A copy of the status of both, which are of one forward pass, put together: what either has to say."""
        return of_both(self.encoder.status, self.decoder.status)

    def save(
        self,
        file: str | Path,
        *,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        dtype: torch.dtype | str | None = None,
        attention_outputs: bool = False,
    ) -> None:
        """Write both traces to one file that `regard.open` reads without the model: see `regard.save`."""
        from regard.trace.file import save  # which needs this class

        save(self, file, layers=layers, heads=heads, dtype=dtype, attention_outputs=attention_outputs)


def of_both(encoder: Status, decoder: Status) -> Status:
    """Put the statuses of the two traces of one forward pass together."""
    return replace(
        decoder,
        kernels=tuple(sorted({*encoder.kernels, *decoder.kernels})),
        difference=largest([encoder.difference, decoder.difference]),
        compared_with=decoder.compared_with or encoder.compared_with,
        rows_compared=max(encoder.rows_compared, decoder.rows_compared),
        embedding_difference=largest([encoder.embedding_difference, decoder.embedding_difference]),
        unknown=(*encoder.unknown, *decoder.unknown),
        dropped=(*encoder.dropped, *decoder.dropped),
        notes=tuple(dict.fromkeys((*encoder.notes, *decoder.notes))),
        seconds=max(encoder.seconds, decoder.seconds),
    )


def largest(values: Sequence[float | None]) -> float | None:
    """The largest of the differences that there are, None where there is none."""
    return max((value for value in values if value is not None), default=None)


def vector(rows: Float[Tensor, "L M"], word: Word) -> Float[Tensor, " M"]:
    """A word's vector: the mean of its tokens'."""
    return rows[list(word.tokens)].mean(0)


def gives(weights: AttentionMap, word: Word) -> Float[Tensor, "H S"]:
    """The attention that a word gives, one row a head: the mean over its tokens."""
    return weights[:, list(word.tokens)].mean(1)


def gets(weights: AttentionMap, word: Word) -> Float[Tensor, "H L"]:
    """The attention that a word gets from every token, one row a head: the sum over its tokens."""
    return weights[:, :, list(word.tokens)].sum(2)


def special_share(weights: Float[Tensor, "*H S"], tokens: Sequence[Token]) -> Float[Tensor, "*H"]:
    """The part of rows of weights that goes to special tokens."""
    special = torch.tensor([token.special for token in tokens], device=weights.device)
    return weights[..., special].sum(-1)
