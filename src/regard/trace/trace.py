"""`Trace`: everything that one forward pass computed for one text, by name. All that regard shows is a function of it.

What adds up to what, with the letters of shapes below:

    input             = token_embeddings + position_embeddings + segment  (L, W)  scaled as the model does
    attention[n]      = softmax(scale · query · keyᵀ + mask)              (H, L, S)  rows sum to 1, or to 1 - sink share
    context[n]        = attention[n] @ values[n]                          (L, H * E)  head by head, side by side
    projected[n]      = context[n] @ W_O.T + bias                         (L, M)  in attention_outputs[n]
    hidden_states[n]  = what enters layer n                               (L, M)  [n + 1] is what leaves it
    last_hidden_state = hidden_states[-1], after a last norm              (L, K)
    logits            = the language head's output for last_hidden_state  (L, V)
                        of a classifier, by `labels`: of each token       (L, C)
                        of the text                                       (C,)

A layer adds its attention output and its feed-forward output to what enters it, the residual stream, with a norm before
or behind each (Vaswani et al. 2017, "Attention Is All You Need"; `AttentionOutput` says which). The parts of the input
are added, and where they were found this is checked: status.embedding_difference.

Letters: L tokens (queries), S keys, H query heads, G key/value heads, E value width, M model width, W width of the
embedding parts, K width of the last hidden state, V vocabulary, C classes. W, M and K are one number in most models.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from regard.trace.labelled_map import LabelledMap, Labels, label_all, vector
from regard.trace.layer_subset import Layers, LayerSubset, call_numbers
from regard.trace.status import Status, merge_statuses

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import RenderableType


class ShownTrace(Shown):
    """A trace that shows itself. windowed: whether its text was read in windows."""

    windowed: ClassVar[bool] = False

    def plot(
        self,
        word: str | None = None,
        *,
        layer: int | None = None,
        head: int | None = None,
        shape: Literal["slide", "column"] = "slide",
    ) -> "Figure":
        """Draw what `regard.see` finds, as `regard see --figure` does; of a pair its alignment.

        layer, head: show these. shape: a "slide" (16:9), or a "column" of a paper, 85 mm wide.
        """
        return from_above("see")(self, word, layer=layer, head=head).plot(layer=layer, head=head, shape=shape)

    def shown(self, width: int) -> "Sequence[RenderableType]":
        """What a notebook shows of it."""
        return from_above("trace_parts")(self, width)


Vectors = Float[Tensor, "L M"]
if TYPE_CHECKING:
    import regard.trace.transformers_output

    StateSubset = LayerSubset[Vectors]
    Maps = Layers[LabelledMap] | LayerSubset[LabelledMap]
    Values = Layers[Tensor | None] | LayerSubset[Tensor | None]
    CrossValues = Layers[Tensor | None] | LayerSubset[Tensor | None]
    Outputs = Layers[AttentionOutput | UnverifiedOutput] | LayerSubset[AttentionOutput | UnverifiedOutput]
else:  # a run-time check of the items' type would look at one that was not kept, which raises
    StateSubset = LayerSubset
    Maps = tuple[AttentionMap, ...] | LayerSubset
    Values = tuple[Float[Tensor, "G S E"] | None, ...] | LayerSubset
    CrossValues = tuple[Float[Tensor, "Gc Sc Ec"] | None, ...] | LayerSubset
    Outputs = tuple[AttentionOutput | UnverifiedOutput, ...] | LayerSubset


NONE: Layers[Any] = Layers()
BY_LAYER = ("attention", "values", "cross", "cross_values", "attention_outputs", "cross_attention_outputs")
MAPS = ("attention", "cross")


def asks_for_cross_attention(what: str, part: Any) -> bool:
    """Tell whether the trace of one text is asked for its cross-attention ("cross") or its own attention (None).

    Raises:
        RegardError: any other part: which of the two it is of, the trace says itself.
    """
    if part is not None and part != "cross":
        raise RegardError(f"{what}: part: given {part!r}, needs 'cross', or None for attention among its own tokens")
    return part == "cross"


class _Kept(ShownTrace):
    """What a trace and a pair of traces can both do: be saved, beside being drawn."""

    def save(
        self,
        file: str | Path,
        *,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        dtype: torch.dtype | str | None = None,
        attention_outputs: bool = False,
    ) -> None:
        """Write the trace, or pair, to one file that `regard.open` reads without the model: see `regard.save`."""
        from_above("save")(self, file, layers=layers, heads=heads, dtype=dtype, attention_outputs=attention_outputs)


@dataclass(eq=False)
class Trace(_Kept):
    """One text's forward pass, without padding, however many texts were batched.

    token_embeddings, position_embeddings, segment: what is added up to the input, None if the model has no such part.
    input: their sum, as it enters the first norm, None where it is not known. hidden_states[n] enters layer n,
    hidden_states[n + 1] leaves it. last_hidden_state: after the final norm, the contextual embeddings. logits: None
    without a language head or classes. attentions: another name of attention.
    attention[n]: the weights (H, L, S) of layer n, computed when they are read. values[n]: its value vectors (G, S, E).
    attention_outputs: the projection, residual and norm around each attention, empty where they were left out. cross,
    cross_values, cross_attention_outputs: the same of a decoder's attention to the encoder's tokens, empty elsewhere.
    names: how a token's id is spelled, for ids that do not occur in the text, where that is known.
    changed_outputs: of (whether in cross, layer), the heads' outputs (H, L, E) where they were ablated or patched:
    others are weights @ values. None where it is not known, as of a trace from a file.
    Where some layers alone were captured or saved, or have attention (hybrids), each of these is a `LayerSubset`, which
    refuses the others; where a layer makes several calls (DiffLlama), attention[n, k] is the k-th.
    labels: of a classifier, the names of its C classes, in the order of the logits' last axis. A sequence classifier
    has one row of logits, (C,). A token classifier has one for each token, (L, C), as has question answering, whose
    classes are "start" and "end". Multiple choice: a trace is of one choice, its logits (1,) are that choice's score.
    Language models and others have no labels.
    turns: the messages of a chat, or the two texts of a pair: where each is in `text`, and its tokens.
    patches: of a picture, which token stands for which part of it; a file does not keep it.
    By words: `attention[n]["bank", "river"]` is (H,), `trace["bank"]` the word's contextual embedding.
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
        """Make `Layers` of the tuples that have one item a layer, and give the maps the words of the text."""
        value = Layers.of(name, value) if name in BY_LAYER and type(value) is tuple else value
        if name in MAPS:
            own = Labels(self.text, self.tokens)
            value = label_all(value, own, own if name == "attention" else None)
        object.__setattr__(self, name, value)
        if name in ("text", "tokens"):  # set anew: so are the words of the maps
            for each in MAPS:
                if each in vars(self):
                    setattr(self, each, getattr(self, each))

    # An index is a place in the text: a trace is no sequence to walk along.
    __iter__ = None

    def __getitem__(self, place: str | Word | int | tuple[str, int]) -> Float[Tensor, " K"]:
        """Look up the contextual embedding of a word, of an occurrence such as `("bank", 1)`, or of a token's number.

        Raises:
            RegardError: the word is not in the text or occurs several times (the occurrences are named), or there is no
                token of that number.
        """
        if isinstance(place, (str, Word, tuple)):
            return vector(self.last_hidden_state, only_word(self.text, self.tokens, place))
        if not is_whole(place):
            needs = 'a word, an occurrence such as ("bank", 1) or a token number; .last_hidden_state has them all'
            raise RegardError(f"trace[...]: given {type(place).__name__}, needs {needs}")
        number, count = operator.index(place), len(self.tokens)
        if not -count <= number < count:
            raise OutOfRangeError(f"token {number} is out of range: the text has tokens 0 to {count - 1}")
        return self.last_hidden_state[number]

    def __repr__(self) -> str:
        layers = str(len(self.attention))
        if isinstance(self.attention, LayerSubset):
            layers = f"{len(self.attention.kept)} of {layers}"
        return f"Trace({shortened(self.text, 80)}, {len(self.tokens)} tokens, {layers} layers, {self.status.model})"

    @property
    def attentions(self) -> Maps:
        """The attention maps, by the name that transformers gives them: the same object as `attention`."""
        return self.attention

    @property
    def sides(self) -> "tuple[Trace, ...]":
        """The trace itself, alone: what `PairTrace.sides` is of a pair."""
        return (self,)

    def word(self, word: str) -> list[Word]:
        """Find every occurrence of a word, with its tokens and characters.

        Raises:
            RegardError: the word is not in the text; the nearest words are named.
        """
        return find_word(self.text, self.tokens, word)

    def as_transformers(self, *, attentions: bool | None = None) -> "regard.trace.transformers_output.TraceOutput":
        """Make what the model of transformers returns, hidden states and dense attentions, with the batch axis.

        attentions: whether the dense weights are computed, H × L × S numbers a layer; None for up to 1 GiB of them.

        Raises:
            RegardError: layers that the trace does not hold, or larger dense weights that were not asked for.
        """
        return from_above("output_of")(self, attentions)


@dataclass
class PairTrace(_Kept):
    """An encoder-decoder's forward pass: the trace of a text and that of its target.

    decoder.cross[n] are the weights (H, L, S) of the target's L tokens on the text's S tokens. Asked by words, the
    query is of the target and the key of the text: `decoder.cross[n]["rive", "bank"]`.
    """

    encoder: Trace
    decoder: Trace

    def __post_init__(self) -> None:
        """Give the keys of cross-attention the words of the text."""
        queries, keys = (Labels(side.text, side.tokens) for side in (self.decoder, self.encoder))
        self.decoder.cross = label_all(self.decoder.cross, queries, keys)

    @property
    def sides(self) -> tuple[Trace, ...]:
        """(encoder, decoder)."""
        return self.encoder, self.decoder

    @property
    def status(self) -> Status:
        """The statuses of both sides in one: a copy, which to change changes neither."""
        return merge_statuses(self.encoder.status, self.decoder.status)

    def as_transformers(self, *, attentions: bool | None = None) -> "regard.trace.transformers_output.PairOutput":
        """Make what the model of transformers returns, the sides' hidden states and attentions, with the batch axis.

        Arguments and errors are those of `Trace.as_transformers`.
        """
        return from_above("output_of_pair")(self, attentions)


def is_causal(trace: Trace) -> bool:
    """Whether no token of a text looks at a later one; a text of one token does not tell, and counts as causal."""
    maps = (trace.attention[call] for call in call_numbers(trace.attention))
    return not any(bool((weights[:, 0, 1:] != 0).any()) for weights in maps)
