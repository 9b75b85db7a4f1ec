"""How a word got from layer to layer: what of each update came from attention, from which tokens, and from the rest.

Layer n moves a token by hidden_states[n + 1] - hidden_states[n]. That update is split exactly: what the attention block
did (what leaves it less what entered the layer), what the cross-attention block of a decoder did then, and what the
rest of the layer did: the feed-forward network with its norms, and whatever else a family does there. A share is a
part's projection onto the update, as a fraction of its length: shares sum to 1, and a part that pulls the other
way has a negative one. The attention block's own part is split once more, into source tokens, bias and norm, as
`contributions` does it.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.names import Part
from regard.errors import RegardError
from regard.explain.causes.contributions import TOLERANCE, Contributions, contributions
from regard.explain.frames import Row, Tabular
from regard.explain.wording import Place, tokens_of
from regard.trace.attention_output import AttentionOutput
from regard.trace.layer_subset import calls_made
from regard.trace.trace import PairTrace, Trace

LARGEST_SHARES = "largest shares through attention"  # what heads a column of the tokens named


@dataclass(frozen=True)
class UpdateSource:
    """What one token gave through all heads of an attention block: its share of the update, and its length."""

    token: int
    text: str
    share: float
    length: float


@dataclass(frozen=True)
class Attending:
    """What an attention block did to the word in one layer.

    share, length: of the whole block. share is sources_share, what all tokens gave, + bias_share, of the projection and
    of the norm, + norm_share, how a norm behind the residual (post-norm) rescaled what was there; 0 in other blocks.
    top: the tokens with the largest shares, either sign.
    """

    share: float
    length: float
    sources_share: float
    norm_share: float
    bias_share: float
    top: list[UpdateSource]


@dataclass(frozen=True)
class LayerUpdate(Tabular):
    """One layer's update of a word's vector; shares are NaN where it did not move at all.

    attention, cross: None where the layer has none. error: how far the parts' sum is from the update, or a part from
    what the model computed, relative to the vector's length, whichever is larger; refused above 1e-5.
    """

    layer: int
    length: float
    attention: Attending | None
    cross: Attending | None
    feed_forward_share: float
    feed_forward_length: float
    error: float

    @property
    def attention_share(self) -> float:
        """The share of self-attention; 0 where the layer has none."""
        return 0.0 if self.attention is None else self.attention.share

    def rows(self) -> list[Row]:
        """List one row, of a layer: its length, and share and length of each part; None for a block that it has not."""
        parts = {"attention": self.attention, "cross": self.cross}
        names = ("share", "length", "sources_share", "norm_share", "bias_share")
        blocks = {f"{part}_{n}": None if own is None else getattr(own, n) for part, own in parts.items() for n in names}
        forward = {"feed_forward_share": self.feed_forward_share, "feed_forward_length": self.feed_forward_length}
        return [{"layer": self.layer, "length": self.length} | blocks | forward | {"error": self.error}]


def layer_updates(trace: Trace | PairTrace, place: Place, *, top: int = 5) -> list[LayerUpdate]:
    """Split every layer's update of a word or token; for an encoder-decoder's target, give the trace of both.

    top: how many source tokens to name.
    """
    *sources, own = trace.sides
    names = sources[0].tokens if sources else ()
    name = own.status.model
    if own.cross and not names:
        raise RegardError(
            f"steps: {name} is an encoder-decoder: give the whole trace for a word of the target, .encoder for one of "
            "the source"
        )
    blocks = (_Blocks(own, place), own.tokens), (_Blocks(own, place, "cross"), names)
    updates = []
    for layer in range(len(own.hidden_states) - 1):
        states = (own.hidden_states[n][blocks[0][0].rows] for n in (layer, layer + 1))
        enters, leaves = (state.detach().cpu().double().mean(0) for state in states)
        change = leaves - enters
        toward = change / (change @ change)
        at, total, error = enters, torch.zeros_like(change), 0.0
        parts: list[Attending | None] = []
        for block, tokens in blocks:
            part = block.of_layer(layer, at)
            if part is None:
                parts.append(None)
                continue
            by_source, bias, moved = part.sources().cpu(), part.bias.cpu(), part.vector.cpu() - at
            norm = part.residual.cpu() - at
            shares, lengths = by_source @ toward, by_source.norm(dim=1)
            best = shares.abs().sort(descending=True, stable=True).indices[:top]
            named = zip(best.tolist(), shares[best].tolist(), lengths[best].tolist(), strict=True)
            parts.append(Attending(
                share=float(moved @ toward), length=float(moved.norm()), sources_share=float(shares.sum()),
                norm_share=float(norm @ toward), bias_share=float(bias @ toward),
                top=[UpdateSource(n, tokens[n].text, share, length) for n, share, length in named],
            ))  # fmt: skip
            total += by_source.sum(0) + bias + norm
            error = max(error, part.error)
            at = part.vector.cpu()
        rest = leaves - at
        error = max(error, float((total + rest - change).norm() / leaves.norm()))
        if not error <= TOLERANCE:
            raise RegardError(
                f"steps: the parts of layer {layer} differ from its step by {error:.1e} of the vector's norm"
            )
        attention, cross = parts
        share, length = float(rest @ toward), float(rest.norm())
        updates.append(LayerUpdate(layer, float(change.norm()), attention, cross, share, length, error))
    return updates


class _Blocks:
    """The attention blocks of a trace, by layer."""

    def __init__(self, trace: Trace, place: Place, part: Part | None = None) -> None:
        self.trace, self.place, self.part = trace, place, part
        self.rows = list(tokens_of(trace, place))
        maps, self.outputs = trace.attention, trace.attention_outputs
        if part == "cross":
            maps, self.outputs = trace.cross, trace.cross_attention_outputs
        self.made = calls_made(maps)
        self.name = "attention" if part is None else "cross-attention"

    def of_layer(self, layer: int, vector: Float[Tensor, " M"]) -> Contributions | None:
        """What a layer's block did, which has to begin at this vector; None where the layer has no such block."""
        count = sum(made == layer for made, _ in self.made)
        if count == 0:
            return None
        if count > 1:
            raise RegardError(
                f"steps: layer {layer} of {self.trace.status.model} makes {count} attention calls, so that its step "
                "has no exact split"
            )
        block = self.outputs[layer] if self.outputs else None
        if isinstance(block, AttentionOutput):
            begins = block.residual[self.rows].detach().cpu().double().mean(0)
            if float((begins - vector).norm()) > TOLERANCE * float(vector.norm()):
                raise RegardError(
                    f"steps: layer {layer} of {self.trace.status.model} does something of its own before its "
                    f"{self.name}, so that its step has no exact split"
                )
        return contributions(self.trace, self.place, layer, part=self.part)
