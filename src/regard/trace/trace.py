"""`Trace`: the named values of one text's forward pass. regard computes all its results from traces.

Equations and shapes:

    input             = token_embeddings + position_embeddings + segment  (L, W)  scaled as the model does
    attention[n]      = softmax(scale · query · keyᵀ + mask)              (H, L, S)  rows sum to 1, or to 1 - sink share
    context[n]        = attention[n] @ values[n]                          (L, H * E)  head by head, side by side
    projected[n]      = context[n] @ W_O.T + bias                         (L, M)  in attention_outputs[n]
    hidden_states[n]  = the input of layer n                              (L, M)  hidden_states[n + 1] is its output
    last_hidden_state = hidden_states[-1], after the final norm           (L, K)
    logits            = the language head's output for last_hidden_state  (L, V)
                        of a token classifier, by `labels`                (L, C)
                        of a text classifier, by `labels`                 (C,)

A layer adds its attention output and its feed-forward output to its input, the residual stream, with norms before or
after (Vaswani et al. 2017, "Attention Is All You Need"; see `AttentionOutput`). If the parts of the input are known,
regard checks their sum: status.embedding_difference.

Letters: L tokens (queries), S keys, H query heads, G key/value heads, E value width, M model width, W width of the
embedding parts, K width of the last hidden state, V vocabulary, C classes. W, M and K are equal in most models.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.checks import is_whole
from regard.errors import OutOfRangeError, RegardError
from regard.images import Patches
from regard.lazy import from_above
from regard.shown import Shown
from regard.text.tokens import Token, Turn, shortened
from regard.text.words import Word, find_word, only_word
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.labelled_map import LabelledMap, Labels, vector
from regard.trace.layers import Layers
from regard.trace.status import Status, merge_statuses

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType


class ShownTrace(Shown):
    """Base class with the plots, displays and files of traces. windowed: whether the text was read in windows."""

    windowed: ClassVar[bool] = False

    def plot(
        self,
        word: str | None = None,
        *,
        layer: int | None = None,
        head: int | None = None,
        shape: Literal["slide", "column"] = "slide",
    ) -> "Figure":
        """Draw the result of `regard.see`, like `regard see --figure`. For a pair, draw its alignment.

        layer, head: the layer and head to show. shape: "slide" (16:9) or "column" (of a paper, 85 mm wide).
        """
        return from_above("see")(self, word, layer=layer, head=head).plot(layer=layer, head=head, shape=shape)

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """Return the parts that a notebook shows."""
        return from_above("trace_parts")(self, width)

    def save(
        self,
        file: str | Path,
        *,
        layers: Sequence[int] | None = None,
        dtype: torch.dtype | str | None = None,
        attention_outputs: bool = False,
    ) -> None:
        """Write the trace or pair to a file, which `regard.open` reads without the model. See `regard.save`."""
        from_above("save")(self, file, layers=layers, dtype=dtype, attention_outputs=attention_outputs)


Vectors = Float[Tensor, "L M"]
if TYPE_CHECKING:
    StateSubset = Layers[Vectors]
    Maps = Layers[LabelledMap]
    Values = Layers[Tensor | None]
    CrossValues = Layers[Tensor | None]
    Outputs = Layers[AttentionOutput | UnverifiedOutput]
else:  # a plain tuple becomes `Layers`, whose missing items run-time type checks must not read
    StateSubset = Layers
    Maps = tuple[AttentionMap, ...] | Layers
    Values = tuple[Float[Tensor, "G S E"] | None, ...] | Layers
    CrossValues = tuple[Float[Tensor, "Gc Sc Ec"] | None, ...] | Layers
    Outputs = tuple[AttentionOutput | UnverifiedOutput, ...] | Layers


NONE: Layers[Any] = Layers("layers", 0, {})
BY_LAYER = ("attention", "values", "cross", "cross_values", "attention_outputs", "cross_attention_outputs")
MAPS = ("attention", "cross")


def asks_for_cross_attention(caller: str, part: Any) -> bool:
    """Return whether part selects cross-attention ("cross") instead of self-attention (None) of a trace.

    Raises:
        RegardError: part has another value. A trace already belongs to an encoder or a decoder.
    """
    if part is not None and part != "cross":
        raise RegardError(f"{caller}: part: got {part!r}, expected 'cross', or None for self-attention")
    return part == "cross"


@dataclass(eq=False)
class Trace(ShownTrace):
    """One text's forward pass, without padding, even if the text was part of a batch.

    token_embeddings, position_embeddings, segment: the parts of the input, None if the model doesn't have them.
    input: their sum before the first norm, None if unknown. hidden_states[n] is the input of layer n,
    hidden_states[n + 1] its output. last_hidden_state: after the final norm, also called contextual embeddings.
    logits: None without a language head or classes. attentions: another name for attention.
    attention[n]: the weights (H, L, S) of layer n, computed on access. values[n]: its value vectors (G, S, E).
    attention_outputs: the projection, residual and norm after each attention call, empty if not kept. cross,
    cross_values, cross_attention_outputs: the same for a decoder's cross-attention, otherwise empty.
    names: the spelling of token ids that don't occur in the text, if known.
    changed_outputs: the head outputs (H, L, E) of ablated or patched layers, by (whether it is cross-attention, layer).
    Other outputs are weights @ values. None if unknown, as in a trace from a file.
    If only some layers were captured or saved, or have attention (hybrids), these sequences raise an error for missing
    layers. If a layer makes several calls (DiffLlama), attention[n, k] is the k-th.
    labels: a classifier's C class names, in the order of the logits' last axis. The logits of a text classifier are
    (C,). Those of a token classifier are (L, C), also for question answering with the classes "start" and "end". In
    multiple choice, a trace has one choice, and its logits (1,) are the score of this choice.
    Other models have no labels.
    turns: the messages of a chat, or the two texts of a pair, each with its position in `text` and its tokens.
    patches: the image regions of the tokens. Files don't store them.
    Index by words: `attention[n]["bank", "river"]` is (H,), `trace["bank"]` is the word's contextual embedding.
    """

    text: str
    tokens: tuple[Token, ...]
    token_embeddings: Float[Tensor, "L W"] | None
    position_embeddings: Float[Tensor, "L W"] | None
    segment: Float[Tensor, "L W"] | None
    input: Float[Tensor, "L W"] | None
    hidden_states: tuple[Vectors, ...] | StateSubset
    last_hidden_state: Vectors
    logits: Float[Tensor, "L V"] | Float[Tensor, " C"] | None
    attention: Maps
    values: Values
    status: Status = field(repr=False)
    cross: Maps = NONE
    cross_values: CrossValues = NONE
    attention_outputs: Outputs = NONE
    cross_attention_outputs: Outputs = NONE
    names: Callable[[int], str] | None = field(default=None, repr=False)
    changed_outputs: Mapping[tuple[bool, int], Tensor] | None = field(default=None, repr=False)
    patches: Patches | None = field(default=None, repr=False)
    turns: tuple[Turn, ...] = field(default=(), repr=False)
    labels: tuple[str, ...] = field(default=(), repr=False)

    def __setattr__(self, name: str, value: Any) -> None:
        """Convert tuples and lists with an item per layer to `Layers`, label the maps with the words of the text."""
        value = Layers.of(name, value) if name in BY_LAYER and type(value) in (tuple, list) else value
        if name in MAPS:
            labels = Labels(self.text, self.tokens)
            keys = labels if name == "attention" else None  # of cross-attention, the pair labels the keys
            value = value.map(partial(LabelledMap.label, queries=labels, keys=keys))
        object.__setattr__(self, name, value)
        if name in ("text", "tokens"):  # the maps need new labels
            for maps in MAPS:
                if maps in vars(self):
                    setattr(self, maps, getattr(self, maps))

    # `trace[...]` looks up a word, so a trace can't be iterated over.
    __iter__ = None

    def __getitem__(self, index: str | Word | int | tuple[str, int]) -> Float[Tensor, " K"]:
        """Return the contextual embedding of a word, an occurrence such as `("bank", 1)`, or a token number.

        Raises:
            RegardError: the word isn't in the text or occurs several times (the message lists the occurrences), or no
                token has this number.
        """
        if isinstance(index, (str, Word, tuple)):
            return vector(self.last_hidden_state, only_word(self.text, self.tokens, index))
        if not is_whole(index):
            needs = 'a word, an occurrence such as ("bank", 1) or a token number; .last_hidden_state has them all'
            raise RegardError(f"trace[...]: got {type(index).__name__}, expected {needs}")
        number, count = operator.index(index), len(self.tokens)
        if not -count <= number < count:
            raise OutOfRangeError(f"token {number} is out of range: the text has tokens 0 to {count - 1}")
        return self.last_hidden_state[number]

    def __repr__(self) -> str:
        layers = str(len(self.attention))
        if len(self.attention.kept) < len(self.attention):
            layers = f"{len(self.attention.kept)} of {layers}"
        return f"Trace({shortened(self.text, 80)}, {len(self.tokens)} tokens, {layers} layers, {self.status.model})"

    @property
    def attentions(self) -> Maps:
        """The attention maps by their name in transformers. The same object as `attention`."""
        return self.attention

    @property
    def sides(self) -> "tuple[Trace, ...]":
        """A tuple with only this trace, like `PairTrace.sides` for a pair."""
        return (self,)

    def word(self, word: str) -> list[Word]:
        """Find all occurrences of a word, with tokens and characters.

        Raises:
            RegardError: the word isn't in the text. The message lists similar words.
        """
        return find_word(self.text, self.tokens, word)


@dataclass
class PairTrace(ShownTrace):
    """An encoder-decoder's forward pass: the trace of a text and the trace of its target.

    decoder.cross[n] has the weights (H, L, S) from the target's L tokens to the text's S tokens. If you index it by
    words, the query is in the target and the key is in the text: `decoder.cross[n]["rive", "bank"]`.
    """

    encoder: Trace
    decoder: Trace

    def __post_init__(self) -> None:
        """Label the keys of cross-attention with the words of the text."""
        queries, keys = (Labels(side.text, side.tokens) for side in (self.decoder, self.encoder))
        self.decoder.cross = self.decoder.cross.map(partial(LabelledMap.label, queries=queries, keys=keys))

    @property
    def sides(self) -> tuple[Trace, ...]:
        """The traces (encoder, decoder)."""
        return self.encoder, self.decoder

    @property
    def status(self) -> Status:
        """The merged status of both sides, as a new object."""
        return merge_statuses(self.encoder.status, self.decoder.status)


def is_causal(trace: Trace) -> bool:
    """Return whether no token of a text attends to a later token. A text with one token counts as causal."""
    maps = (trace.attention[call] for call in trace.attention.calls)
    open_maps = (m for m in maps if m.given is not None or m.rule.mask is None or m.rule.mask.high != 0)
    return not any(bool((weights[:, 0, 1:] != 0).any()) for weights in open_maps)
