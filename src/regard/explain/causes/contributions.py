"""Split an attention block's output exactly into contributions of each source token through each head.

    contribution_hs = weight_hs · value_s · W_O[h],  Σ_hs contribution_hs + bias = the block's output

Weights alone can mislead: a large weight on a short value vector changes little. A source's contribution through a head
is weight × value × the head's slice of the output projection (Kobayashi et al. 2020, "Attention is Not Only a Weight").
The contributions of all sources and heads, the residual and the biases add up to the block's output. This also holds
after a norm with fixed statistics, because the norm is then linear (Kobayashi et al. 2021, "Incorporating Residual and
Normalization Layers into Analysis of Masked Language Models"). The norm can be a layer norm after the residual (BERT),
or an RMS norm between the projection and the residual (Gemma 2, OLMo 2). For a parallel block (GPT-J, GPT-NeoX), the
vector is the residual plus attention's output, without the feed-forward output.

Attention rollout estimates how much of each input token reaches a token, as if only attention mixed tokens:

    rollout = Ã_n · … · Ã_1 · Ã_0,  Ã_l = 0.5 A_l + 0.5 I

A_l is the mean over the layer's heads, and I the residual connection (Abnar & Zuidema 2020, "Quantifying Attention Flow
in Transformers"). Unlike contributions, rollout ignores value vectors. For an encoder-decoder's decoder, it follows
only the target's tokens: cross-attention isn't included.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from regard.attention.attention_map import AttentionMap
from regard.capture.interventions.names import Part
from regard.errors import InexactError, RegardError
from regard.explain.weights.attended import check_layer
from regard.explain.wording import Place, refuse_pairs, tokens_of
from regard.shown import Row, Tabular
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput
from regard.trace.trace import Trace, asks_for_cross_attention

COMPARED = 8  # tokens whose contributions are summed and compared with the model's output
TOLERANCE = 1e-5  # largest difference between the components' sum and the model's output, relative to its norm


@dataclass(frozen=True, eq=False, repr=False)
class Contributions(Tabular):
    """The components of a token's vector (or a word's mean vector) at the output of an attention block, in float64.

    shares, residual_share and bias_share sum to 1. A component that points away from the vector has a negative share.
    residual: the block's input. bias: of the projection and the norm. vector: the model's own output. error: the larger
    of two differences. One is between the components' sum and vector, relative to its norm. The other is between the
    sum of the heads and the projection's output, relative to the sum of the heads' norms.
    """

    residual: Float[Tensor, " M"]
    residual_share: float
    bias: Float[Tensor, " M"]
    bias_share: float
    vector: Float[Tensor, " M"]
    error: float
    _weights: Float[Tensor, "H S"] = field(repr=False)
    _values: Float[Tensor, "G S E"] = field(repr=False)
    _projection: Float[Tensor, "H M E"] = field(repr=False)

    @cached_property
    def norms(self) -> Float[Tensor, "H S"]:
        """Return the norm of each contribution to attention's output, by head and source, (H, S)."""
        gram = self._projection.transpose(1, 2) @ self._projection  # (H, E, E), to avoid a tensor (H, S, M)
        values = self._values.repeat_interleave(len(gram) // len(self._values), 0)  # (H, S, E)
        return self._weights.abs() * ((values @ gram) * values).sum(-1).clamp_min(0).sqrt()

    @cached_property
    def shares(self) -> Float[Tensor, "H S"]:
        """Return each contribution's projection onto the vector, as a fraction of the vector's length, (H, S)."""
        direction = self._projection.transpose(1, 2) @ (self.vector / (self.vector @ self.vector))  # (H, E)
        values = self._values.repeat_interleave(len(direction) // len(self._values), 0)  # (H, S, E)
        return self._weights * (values @ direction[..., None])[..., 0]

    def rows(self) -> list[Row]:
        """Return one row per head and source, then the residual and bias, with norm and share. The shares sum to 1."""
        heads = enumerate(zip(self.norms.tolist(), self.shares.tolist(), strict=True))
        rows: list[Any] = [("source", head, source, *numbers) for head, row in heads
                           for source, numbers in enumerate(zip(*row, strict=True))]  # fmt: skip
        rows.append(("residual", None, None, float(self.residual.norm()), self.residual_share))
        rows.append(("bias", None, None, float(self.bias.norm()), self.bias_share))
        return [dict(zip(("part", "head", "source", "norm", "share"), row, strict=True)) for row in rows]

    def part(self, head: int, source: int) -> Float[Tensor, " M"]:
        """Return the contribution of one source token to attention's output through one head, (M,)."""
        group = head * self._values.shape[0] // self._weights.shape[0]
        return self._weights[head, source] * (self._projection[head] @ self._values[group, source])

    def heads(self) -> Float[Tensor, "H M"]:
        """Return each head's contribution to attention's output, the sum over source tokens, (H, M)."""
        grouped = self._weights.view(len(self._values), -1, self._values.shape[1])
        context = (grouped @ self._values).flatten(0, 1)  # (H, E)
        return (self._projection @ context[..., None])[..., 0]

    def sources(self) -> Float[Tensor, "S M"]:
        """Return each source's contribution, summed over heads, (S, M). Kobayashi et al. (2020) compare their norms."""
        total = self.vector.new_zeros(self._weights.shape[1], len(self.vector))
        group_size = self._weights.shape[0] // self._values.shape[0]
        for head, (weights, projection) in enumerate(zip(self._weights, self._projection, strict=True)):
            total.addmm_(weights[:, None] * self._values[head // group_size], projection.T)
        return total


def contributions(trace: Trace, place: Place, layer: int, *, part: Part | None = None) -> Contributions:
    """Split a word's or token's vector, at the output of a layer's attention block, into its components.

    place: a word, one of its occurrences (`trace.word`), or a token's number. part: "cross" selects a decoder's
    cross-attention block. The sources are then the encoder's tokens.

    Raises:
        RegardError: the word, token, layer or part doesn't exist, the trace doesn't have the values needed, the block's
            structure isn't verified, or the components don't add up to the model's output.
    """
    return contributions_of_places(trace, [tokens_of(trace, place)], layer, part=part)[0]


def contributions_of_places(
    trace: Trace, places: Sequence[Sequence[int]], layer: int, *, part: Part | None = None
) -> list[Contributions]:
    """Compute `contributions` for several words, each passed as its token numbers."""
    cross, layer = asks_for_cross_attention("contributions", part), check_layer(trace, layer)
    maps = trace.cross if cross else trace.attention
    values = trace.cross_values if cross else trace.values
    attention_outputs = trace.cross_attention_outputs if cross else trace.attention_outputs
    if cross and not maps:
        raise RegardError(f"contributions: {trace.status.model} has no cross-attention here")
    value, block = values[layer], attention_outputs[layer] if attention_outputs else None
    name = f"contributions of layer {layer} of {trace.status.model}"
    if isinstance(block, UnverifiedOutput):
        raise RegardError(f"{name}: no exact split is known for a block of this shape: {block.reason}")
    if block is None:
        raise RegardError(
            f"contributions of layer {layer}: the trace doesn't contain its output projection: it was traced with "
            "attention_outputs=False, or saved without attention_outputs=True (--save-attention-outputs)"
        )
    if value is None:
        raise RegardError(f"contributions of layer {layer}: the trace doesn't contain its values")
    try:
        return split(maps[layer][:, [row for rows in places for row in rows]], value, block, places)
    except InexactError as error:
        raise InexactError(f"{name}: {error}") from None


def split(
    weights: Float[Tensor, "H r S"],
    values: Float[Tensor, "G S E"],
    block: AttentionOutput,
    places: Sequence[Sequence[int]],
) -> list[Contributions]:
    """Split a block's output at several places, each the mean over some rows.

    weights: for the rows of all places, in order. values: all values of the layer.

    Raises:
        InexactError: the components' sum differs from the model's output by more than 1e-5 of its norm.
    """
    chosen, norm = [row for rows in places for row in rows], block.norm
    summed = block.residual[chosen] + block.added[chosen]  # (r, M), in the model's dtype, as computed by the model
    model = summed if norm is None else F.layer_norm(summed, summed.shape[-1:], norm.weight, norm.bias, norm.eps)
    w, v, out, residual, projected, added, computed = map(
        _to_float64,
        (weights, values, block.weight, block.residual[chosen], block.projected[chosen], block.added[chosen], model),
    )
    h, m = w.shape[0], out.shape[0]
    bias = out.new_zeros(m) if block.bias is None else _to_float64(block.bias)
    projection = out.view(m, h, -1).transpose(0, 1)  # (H, M, E): each head's slice of W_O
    context = (w.reshape(len(v), -1, v.shape[1]) @ v).view(h, -1, v.shape[2])  # heads of a group share values
    by_head = context @ projection.transpose(1, 2)  # (H, r, M)
    attended = by_head.sum(0)
    # Attention's output is also compared with its heads' sum, because a large residual could hide a wrong split.
    compared = [(attended + bias, projected, by_head.norm(dim=-1).sum(0) + bias.norm())]

    # per token, `inner` scales attention's output, and `scale` the sum with the residual
    inner = scale = out.new_ones(len(chosen), 1)
    shift = out.new_zeros(m)
    if block.scaling is not None:
        inner, gain = map(_to_float64, (block.scaling.scale[chosen], block.scaling.gain))
        projection, attended, bias = gain[:, None] * projection, gain * attended, gain * bias
        compared.append((inner * gain * projected, added, added.norm(dim=-1)))
    if norm is not None:
        # With fixed statistics the norm is linear: subtract the mean, multiply by weight / deviation, add the bias.
        scale = ((residual + added).var(-1, correction=0, keepdim=True) + norm.eps).rsqrt()  # (r, 1)
        gain = out.new_ones(m) if norm.weight is None else _to_float64(norm.weight)
        shift = shift if norm.bias is None else _to_float64(norm.bias)
        projection = (projection - projection.mean(1, keepdim=True)).mul_(gain[:, None])
        residual, attended, bias = (gain * (x - x.mean(-1, keepdim=True)) for x in (residual, attended, bias))
    parts = scale * (residual + inner * (attended + bias)) + shift
    compared.append((parts, computed, computed.norm(dim=-1)))

    tiny = torch.finfo(torch.float64).tiny
    error = torch.stack([(x - y).norm(dim=-1) / of.clamp_min(tiny) for x, y, of in compared]).amax(0)  # (r,)
    if not bool((error <= TOLERANCE).all()):
        raise InexactError(
            f"the parts' sum differs from what the model computed by {float(error.max()):.1e} of its norm, allowed is "
            f"{TOLERANCE:.0e} (the model computes in {str(block.projected.dtype).removeprefix('torch.')})"
        )

    results, start, factor = list[Contributions](), 0, scale * inner
    for rows in places:
        span, start = slice(start, start + len(rows)), start + len(rows)
        u = (w[:, span] * factor[span]).mean(1)  # (H, S), mean over rows, each scaled by its norm statistics
        kept, vector = (scale[span] * residual[span]).mean(0), computed[span].mean(0)
        biases, toward = (factor[span] * bias).mean(0) + shift, vector / (vector @ vector)
        results.append(Contributions(
            residual=kept, residual_share=float(kept @ toward), bias=biases, bias_share=float(biases @ toward),
            vector=vector, error=float(error[span].max()), _weights=u, _values=v, _projection=projection,
        ))  # fmt: skip
    return results


def shares_of_sources(
    parts: Sequence[Contributions], toward: Float[Tensor, "P M"], top: int
) -> tuple[Float[Tensor, "P S"], Int[Tensor, "P k"], Float[Tensor, "P k"], Float[Tensor, "P M"]]:
    """Project each source's contribution, summed over heads, onto one direction per split. All splits are of one block.

    Returns these shares (P, S), the `top` sources with the largest shares, the lengths of their contributions, and the
    sum over all sources (P, M). Only contributions whose length is needed are computed in full width.
    """
    values, projection = parts[0]._values, parts[0]._projection
    weights, toward = torch.stack([part._weights for part in parts], 1), toward.to(values.device)  # (H, P, S)
    by_head = zip(weights, values.repeat_interleave(len(weights) // len(values), 0), projection, strict=True)
    heads, shares, total = [*by_head], torch.zeros_like(weights[0]), torch.zeros_like(toward)
    for weight, value, out in heads:
        shares += weight * (toward @ out @ value.T)
        total.addmm_(weight @ value, out.T)
    best = shares.abs().sort(descending=True, stable=True).indices[:, :top]
    vectors = toward.new_zeros(best.numel(), toward.shape[1])
    for weight, value, out in heads:
        vectors.addmm_((weight.gather(1, best)[..., None] * value[best]).flatten(0, 1), out.T)
    return shares.cpu(), best.cpu(), vectors.norm(dim=1).view(best.shape).cpu(), total.cpu()


def _to_float64(tensor: Tensor) -> Tensor:
    """Convert a tensor to float64, on the CPU if its device has no float64."""
    return (tensor.cpu() if tensor.device.type == "mps" else tensor).detach().double()


def adds_up(weights: AttentionMap, values: Float[Tensor, "G S E"], output: AttentionOutput) -> bool:
    """Check whether the heads' contributions add up to the model's output, for a few evenly spaced tokens."""
    _, length, size = weights.shape
    if not length or not size:
        return False
    rows = torch.linspace(0, length - 1, min(COMPARED, length)).round().long().unique()
    try:
        split(weights[:, rows.to(weights.device)], values, output, [rows.tolist()])
    except RegardError:
        return False
    return True


def contribution_norms(
    weights: AttentionMap, values: Float[Tensor, "G S E"], output: AttentionOutput
) -> Float[Tensor, "H S"] | None:
    """Compute ‖W_O · value‖ for every head and key, or None if the components don't add up to the model's output.

    Weight × this norm is the norm of a contribution (Kobayashi et al. 2020, "Attention is Not Only a Weight").
    """
    if not adds_up(weights, values, output):
        return None
    projection = output.weight.detach().cpu().double().unflatten(1, (len(weights), -1)).transpose(0, 1)  # (H, M, E)
    vectors = values.detach().cpu().double().repeat_interleave(len(projection) // len(values), 0)
    return ((vectors @ (projection.mT @ projection)) * vectors).sum(-1).clamp_min(0).sqrt().float()


def projected_values(values: Float[Tensor, "G S E"], output: AttentionOutput) -> Float[Tensor, "H S M"]:
    """Compute W_O · value for each head and key in float64, without bias: the contribution at a weight of 1."""
    projection = output.weight.detach().cpu().double().unflatten(1, (-1, values.shape[-1]))  # (M, H, E)
    per_head = values.detach().cpu().double().repeat_interleave(projection.shape[1] // len(values), 0)
    return torch.einsum("hse,mhe->hsm", per_head, projection)


BAND = 1 << 22  # weights in memory at once


def rollout(
    trace: Trace, places: Sequence[Place] | None = None, *, layer: int | None = None
) -> Float[Tensor, "places S"]:
    """Compute the attention rollout after a layer (default: the last): each input token's fraction at each position.

    places: words, occurrences or token numbers, None for every token. A word's row is the mean over its tokens. A row
    (float64) sums to 1, or to less if heads have learned sinks. Memory is O(places × S) plus one band of weights.

    Raises:
        RegardError: the word, token or layer doesn't exist, or the maps aren't square (cross-attention).
    """
    refuse_pairs(trace)
    maps = trace.attention[: None if layer is None else check_layer(trace, layer) + 1]
    length = len(trace.tokens)
    for number, weights in enumerate(maps):
        if weights.shape[1:] != (length, length):
            raise RegardError(
                f"rollout: the map of layer {number} is {weights.shape[1]} × {weights.shape[2]} for {length} tokens; "
                "it needs self-attention, with queries and keys in one text"
            )
    groups = [tokens_of(trace, place) for place in (range(length) if places is None else places)]
    rows = torch.zeros(len(groups), length, dtype=torch.float64, device=maps[0].device)
    for row, tokens in zip(rows, groups, strict=True):
        row[tokens] = 1 / len(tokens)
    # From the last layer down, only the requested rows are needed, with one band of a layer's matrix at a time.
    for weights in reversed(maps):
        reached = rows.any(0).nonzero()[:, 0]  # only these rows of weights are needed
        mixed = torch.zeros_like(rows)
        for band in reached.split(max(1, BAND // (weights.shape[0] * length))):
            mixed += rows[:, band] @ weights[:, band].mean(0).double()
        rows = 0.5 * rows + 0.5 * mixed
    return rows
