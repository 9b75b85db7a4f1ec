"""Split a word's residual update in each layer into attention, by token, and the rest of the layer.

Layer n moves a token by hidden_states[n + 1] - hidden_states[n]. This update is split exactly into the changes by the
attention block, by a decoder's cross-attention block, and by the rest of the layer. The rest is the feed-forward
network with its norms, and any other operation of the architecture. A share is a component's projection onto the
update, as a fraction of the update's length. Shares sum to 1, and a component that points the other way has a negative
share. The attention block's component is split further into source tokens, bias and norm, as in `contributions`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.names import Part
from regard.errors import RegardError
from regard.explain.causes.contributions import TOLERANCE, contributions_of_places, shares_of_sources
from regard.explain.wording import Place, tokens_of
from regard.shown import Row, Tabular
from regard.text.tokens import Token
from regard.trace.attention_output import AttentionOutput
from regard.trace.trace import PairTrace, Trace

LARGEST_SHARES = "largest shares through attention"  # column title


@dataclass(frozen=True)
class UpdateSource:
    """A token's contribution through all heads of an attention block: its share of the update, and its norm."""

    token: int
    text: str
    share: float
    length: float


@dataclass(frozen=True)
class Attending:
    """The effect of an attention block on the word in one layer.

    share, length: of the whole block. share = sources_share (all tokens) + bias_share (projection and norm) +
    norm_share. norm_share is the rescaling of the residual by a norm after it (post-norm), and 0 in other blocks. top:
    the tokens with the largest absolute shares.
    """

    share: float
    length: float
    sources_share: float
    norm_share: float
    bias_share: float
    top: list[UpdateSource]


@dataclass(frozen=True)
class LayerUpdate(Tabular):
    """One layer's update of a word's vector. Shares are NaN if the vector didn't change.

    attention, cross: None if the layer has no such block. error: the largest relative difference, at most 1e-5, between
    the components' sum and the update, or between a block's contributions and the model's output.
    """

    layer: int
    length: float
    attention: Attending | None
    cross: Attending | None
    feed_forward_share: float
    feed_forward_length: float
    error: float

    def rows(self) -> list[Row]:
        """Return one row: the layer, the update's length, and each component's share and length, or None."""
        parts = {"attention": self.attention, "cross": self.cross}
        names = ("share", "length", "sources_share", "norm_share", "bias_share")
        blocks = {f"{part}_{n}": None if row is None else getattr(row, n) for part, row in parts.items() for n in names}
        forward = {"feed_forward_share": self.feed_forward_share, "feed_forward_length": self.feed_forward_length}
        return [{"layer": self.layer, "length": self.length} | blocks | forward | {"error": self.error}]


def layer_updates(trace: Trace | PairTrace, place: Place, *, top: int = 5) -> list[LayerUpdate]:
    """Split every layer's update of a word or token. For a target word, pass the encoder-decoder's whole trace.

    top: the number of source tokens to name.
    """
    return [updates[0] for updates, _ in updates_of_places(trace, [tokens_of(trace.sides[-1], place)], top)]


def updates_of_places(
    trace: Trace | PairTrace, places: Sequence[Sequence[int]], top: int
) -> list[tuple[list[LayerUpdate], Float[Tensor, "P S"] | None]]:
    """Split the updates of several words, passed as token numbers. Each layer has one `LayerUpdate` per word.

    Each layer also has the shares of all tokens through self-attention, (P, S), None without self-attention.
    """
    *sources, side = trace.sides
    names = sources[0].tokens if sources else ()
    name = side.status.model
    if side.cross and not names:
        raise RegardError(
            f"steps: {name} is an encoder-decoder: pass the whole trace for a word of the target, .encoder for one of "
            "the source"
        )
    blocks: list[tuple[Part | None, str, Sequence[Token], Any, Any]] = [
        (None, "attention", side.tokens, side.attention, side.attention_outputs),
        ("cross", "cross-attention", names, side.cross, side.cross_attention_outputs),
    ]
    updates = []
    for layer in range(len(side.hidden_states) - 1):
        enters, leaves = (_mean_states(side.hidden_states[n], places) for n in (layer, layer + 1))  # (P, M)
        change = leaves - enters
        toward = change / (change * change).sum(-1, keepdim=True)
        at, total, errors = enters, torch.zeros_like(change), change.new_zeros(len(places))
        parts, shares_of_tokens = list[list[Attending | None]](), None
        for part, kind, tokens, maps, outputs in blocks:
            count = sum(number == layer for number, _ in maps.made)
            if count == 0:
                parts.append([None] * len(places))
                continue
            if count > 1:
                raise RegardError(
                    f"steps: layer {layer} of {name} makes {count} attention calls, so that its step has no exact split"
                )
            block = outputs[layer] if outputs else None
            begins = _mean_states(block.residual, places) if isinstance(block, AttentionOutput) else at
            if bool(((begins - at).norm(dim=-1) > TOLERANCE * at.norm(dim=-1)).any()):
                raise RegardError(
                    f"steps: layer {layer} of {name} applies another operation before its {kind}, so that its step "
                    "has no exact split"
                )
            splits = contributions_of_places(side, places, layer, part=part)
            shares, best, lengths, summed = shares_of_sources(splits, toward, top)
            vector, residual, bias = (
                torch.stack([getattr(item, of) for item in splits]).cpu() for of in ("vector", "residual", "bias")
            )
            moved, norm = vector - at, residual - at
            projections = [(vectors * toward).sum(-1) for vectors in (moved, norm, bias)]
            numbers = zip(*(x.tolist() for x in (*projections, moved.norm(dim=-1), shares.sum(-1))), strict=True)
            largest = (x.tolist() for x in (best, shares.gather(1, best), lengths))
            parts.append([
                Attending(share, length, by_sources, by_norm, by_bias,
                          [UpdateSource(n, tokens[n].text, *item) for n, *item in zip(*of_place, strict=True)])
                for (share, by_norm, by_bias, length, by_sources), *of_place in zip(numbers, *largest, strict=True)
            ])  # fmt: skip
            shares_of_tokens = shares if part is None else shares_of_tokens
            total += summed + bias + norm
            errors = torch.maximum(errors, torch.tensor([item.error for item in splits], dtype=errors.dtype))
            at = vector
        rest = leaves - at
        errors = torch.maximum(errors, (total + rest - change).norm(dim=-1) / leaves.norm(dim=-1).clamp_min(1e-300))
        if not bool((errors <= TOLERANCE).all()):
            raise RegardError(
                f"steps: the parts of layer {layer} differ from its step by {float(errors.max()):.1e} of the vector's "
                "norm"
            )
        lengths, share, length = change.norm(dim=-1), (rest * toward).sum(-1), rest.norm(dim=-1)
        columns = lengths.tolist(), *parts, share.tolist(), length.tolist(), errors.tolist()
        updates.append(([LayerUpdate(layer, *row) for row in zip(*columns, strict=True)], shares_of_tokens))
    return updates


def _mean_states(states: Float[Tensor, "L M"], places: Sequence[Sequence[int]]) -> Float[Tensor, "P M"]:
    """Average a hidden state over the tokens of each followed word, in float64."""
    rows = states[[n for tokens in places for n in tokens]].detach().cpu().double()
    return torch.stack([part.mean(0) for part in rows.split([len(tokens) for tokens in places])])
