"""Join the passes of one generation, prefill and decoded tokens, row by row as if they had been one pass.

Only what is new of a pass is copied: its queries, keys, values, states, embeddings and logits. Keys that a cache hands
out again are not, so that T tokens take memory O(T), and nothing aliases a buffer that a cache overwrites.

    the mask of the first pass      the joined mask                     each later pass
    ------------------------------  ----------------------------------  ------------------------------------
    a specification                 its pattern, without padding        its mask has to be a row of the pattern
    a boolean tensor                the rows of all passes, written out adds its rows
    none, or an additive bias       causal; of cross-attention none     its rows have to be those of the pattern

Sampled rows of every joined map are compared with those of the passes; a join that is off is refused.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention import masks
from regard.attention.ablated_call import change_outputs
from regard.attention.ablation import Ablation, EdgeAblation, HeadAblation
from regard.attention.attention_map import AttentionMap
from regard.attention.kernels import row_update
from regard.attention.masks import AXES, Edges, Mask
from regard.attention.patches import CallPatch
from regard.attention.recording import Call
from regard.attention.scores import ScoreRule, grouped_product
from regard.capture.state import Comparison, sampled_rows
from regard.errors import RegardError
from regard.generation.step_ablation import PassRange, within_pass
from regard.trace.attention_output import AttentionOutput, UnverifiedOutput

WRITTEN = "Biases or masks are stored as T × T numbers for T tokens."
FAR = 1e-4  # how far sampled rows of a joined map may be from the passes' own

Key = tuple[str, int]  # (path, n-th call of it) of an attention call


class Rows:
    """Collects rows that come a few at a time in one tensor (.., rows, width), which doubles where it is full."""

    def __init__(self) -> None:
        self._used = 0
        self._held: Tensor | None = None

    def add(self, rows: Float[Tensor, "*_ r w"]) -> None:
        """Append them."""
        count, size = rows.shape[-2], 0 if self._held is None else self._held.shape[-2]
        if self._held is None or self._used + count > size:
            grown = rows.new_empty(*rows.shape[:-2], max(self._used + count, 2 * size), rows.shape[-1])
            if self._held is not None:
                grown[..., : self._used, :] = self._held[..., : self._used, :]
            self._held = grown
        self._held[..., self._used : self._used + count, :] = rows
        self._used += count

    def whole(self) -> Float[Tensor, "*_ r w"]:
        """Return all rows in a tensor of just their size."""
        assert self._held is not None
        if self._held.shape[-2] > self._used:
            self._held = self._held[..., : self._used, :].clone(memory_format=torch.contiguous_format)
        return self._held


@dataclass(frozen=True, eq=False)
class SampledRows:
    """Rows of a pass to compare the joined map with: their numbers, weights on the keys from first on, and outputs."""

    rows: Int[Tensor, " r"]
    first: int
    weights: Float[Tensor, "1 H r s"]
    output: Float[Tensor, "1 H r E"]


class _WrittenRows:
    """Collects biases or boolean masks that come as tensors, pass by pass."""

    def __init__(self) -> None:
        self._rows: list[tuple[PassRange, Tensor]] = []

    def add(self, tensor: Tensor, place: PassRange, size: int, memo: dict[Any, Any]) -> None:
        """Those of a pass with size keys, (1, H|1, L|1, S|1); one copy for all layers that are given the same."""
        name = "rows", tensor.data_ptr(), tuple(tensor.shape), tensor.stride(), place
        if name not in memo:
            memo[name] = tensor.expand(-1, -1, place.count, size)[..., : place.seen].clone()
        self._rows.append((place, memo[name]))

    def whole(self, length: int, size: int, fill: Any, memo: dict[Any, Any]) -> Tensor:
        """All of them as one (1, H|1, L, S) tensor; one for all layers that were given the same."""
        name = tuple(tensor.data_ptr() for _, tensor in self._rows)
        if name not in memo:
            first = self._rows[0][1]
            joined = first.new_full((1, first.shape[1], length, size), fill)
            for place, tensor in self._rows:
                joined[:, :, place.past : place.past + place.count, place.first : place.first + place.seen] = tensor
            memo[name] = joined
        return memo[name]


class JoinedCall:
    """One attention call of every pass. cross: whether its keys are of another sequence, the same in all passes.

    ablations: of the whole text's matrix, those that every pass applied to its rows.
    """

    def __init__(self, call: Call, mask: Any, cross: bool, ablations: tuple[Ablation, ...] = ()) -> None:
        self.ablations = ablations
        self.path, self.nth, self.cross = call.path, call.nth, cross
        self.query, self.key, self.value = Rows(), Rows(), Rows()
        self.kernels: set[str] = set()
        self.samples: list[SampledRows] = []
        self.rule = replace(call.weights.rule, mask=None, bias=None)
        self.bias = None if call.weights.rule.bias is None else _WrittenRows()
        self.allowed = _WrittenRows() if isinstance(mask, Tensor) and mask.dtype == torch.bool else None
        # Only keys that exist are joined, so padding is left out of a mask; where there is no mask, or one written
        # out, a row sees what was there.
        self.mask = replace(mask, keys=None) if isinstance(mask, Mask) else Mask() if cross else masks.causal()

    def add(self, call: Call, past: int, mask: Any, memo: dict[Any, Any]) -> None:
        """Add a pass's call after the past tokens. mask: of this call. memo: shared by the layers of the pass."""
        weights, rule, value = call.weights, call.weights.rule, call.value
        assert value is not None
        count, size = weights.query.shape[2], weights.key.shape[2]
        place = PassRange(past, count, 0, 0, size) if self.cross else PassRange.of(size, past, count)
        first, sinks = self.rule.sinks, rule.sinks
        same_sinks = sinks is first if sinks is None or first is None else torch.equal(sinks, first)
        same_bias = (rule.bias is None) == (self.bias is None)
        if (rule.scale, rule.softcap) != (self.rule.scale, self.rule.softcap) or not same_sinks or not same_bias:
            raise RegardError(
                f"generate: {self.path}: the scores of token {past} follow another rule than those before, so they "
                "cannot be joined to one map"
            )
        self.query.add(weights.query)
        if not self.cross or past == 0:
            new = slice(place.new, size if self.cross else place.new + count)
            self.key.add(weights.key[:, :, new])
            self.value.add(value[:, :, new])
        if self.bias is not None and rule.bias is not None:
            self.bias.add(rule.bias, place, size, memo)
        if rule.mask is not None and rule.mask.removed:  # ablated edges are no part of the pattern
            rule = replace(rule, mask=replace(rule.mask, removed=()))
        checked = id(mask), rule.mask is None, self.cross, place
        if self.allowed is not None:
            self.allowed.add(mask[..., :size], place, size, memo)
        elif not isinstance(mask, Tensor) and memo.setdefault(checked, self) is self:
            self._check(rule, place, size, weights.device)  # for all layers that are given this mask
        self.kernels.add(call.kernel)

    def sample(self, call: Call, past: int, last: bool) -> None:
        """Keep a few rows of a pass as they were: of the first pass, of the first step, of one in between, the last."""
        rows = sampled_rows(call.weights.query.shape[2]).to(call.weights.device)
        place = PassRange.of(call.weights.key.shape[2], past, call.weights.query.shape[2])
        first, seen = (0, call.weights.key.shape[2]) if self.cross else (place.first, place.seen)
        assert call.output is not None
        sample = SampledRows(rows + past, first, call.weights[:, :, rows][..., :seen], call.output[:, :, rows].clone())
        if len(self.samples) > 2 and not last:
            self.samples.pop()
        self.samples.append(sample)

    def whole(self, length: int, memo: dict[Any, Any]) -> tuple[Call, Comparison]:
        """Join the passes' calls; returns the call and its sampled rows compared with the passes' own.

        Differences of outputs are relative to the largest output, where that is above 1.
        memo: what was written out for the layers before; layers that share it go on sharing it.
        """
        query, key, value = self.query.whole(), self.key.whole(), self.value.whole()
        size, mask = key.shape[2], self.mask
        if self.allowed is not None:
            mask = mask & masks.dense(self.allowed.whole(length, size, False, memo))
        bias = None if self.bias is None else self.bias.whole(length, size, -torch.inf, memo)
        if bias is not None and not bool(bias.any()):
            bias = None  # zeros, as T5 gives them to cross-attention, say nothing
        rule = replace(self.rule, bias=bias, mask=mask.simplified(length, size))
        ablations = [within_pass(ablation, PassRange(0, length, 0, 0, size)) for ablation in self.ablations]
        shape = 1, query.shape[1], length, size
        removed = tuple(
            Edges(shape, *(getattr(ablation, axis) for axis in AXES))
            for ablation in ablations
            if isinstance(ablation, EdgeAblation)
        )
        if removed:
            rule = row_update.without_edges(rule, removed)
        changes = tuple(ablation for ablation in ablations if isinstance(ablation, (HeadAblation, CallPatch)))
        weights = AttentionMap(query, key, rule, offset=None if self.cross else 0)
        comparison = Comparison("the single passes", weights=0.0)
        for sample in self.samples:
            rows = weights[:, :, sample.rows]  # (1, H, r, S)
            theirs = torch.zeros_like(rows)
            theirs[..., sample.first : sample.first + sample.weights.shape[-1]] = sample.weights
            row_changes = _of_rows(changes, sample.rows.tolist())
            output = change_outputs(grouped_product(rows, value.to(rows.dtype)), row_changes)
            off = float((output - sample.output).abs().max()) / max(1.0, float(sample.output.abs().max()))
            comparison.add(float((rows - theirs).abs().max()), off, len(sample.rows))
        exact = value.dtype in (torch.float32, torch.float64)
        # outputs are rounded to the model's own dtype
        if not ((comparison.weights or 0.0) <= FAR and comparison.outputs <= (FAR if exact else 0.05)):
            raise RegardError(
                f"generate: {self.path}: joined to one map, the weights are off by {comparison.weights:.0e} and the "
                f"outputs by {comparison.outputs:.0e} of theirs: this family's passes cannot be joined"
            )
        return Call(self.path, self.nth, min(self.kernels), weights, value, None, None, self.ablations), comparison

    def _check(self, rule: ScoreRule, place: PassRange, size: int, device: torch.device) -> None:
        """Compare the pass's mask with its rows of the pattern: sampled rows of the first pass, all of a later one."""
        rows = sampled_rows(place.count).to(device)
        tile = None
        if rule.mask is not None:
            tile = rule.mask.tile(slice(0, 1), slice(0, 1 << 30), rows, slice(0, size), device)
        if tile is None:
            tile = torch.ones(1, 1, 1, 1, dtype=torch.bool, device=device)
        allowed = tile.expand(-1, -1, len(rows), size)  # what they may attend to
        everything, columns = slice(0, 1), slice(0, place.first + place.seen)
        pattern = self.mask.tile(everything, slice(0, allowed.shape[1]), rows + place.past, columns, device)
        expected = allowed.new_zeros(*allowed.shape[:3], columns.stop)
        expected[..., place.first :] = allowed[..., : place.seen]
        same = (expected == (True if pattern is None else pattern)).all()
        if not bool(same) or bool(allowed[..., place.seen :].any()):
            raise RegardError(
                f"generate: {self.path}: what token {place.past} may attend to is not what its place after the others "
                "says, so they cannot be joined to one map"
            )


class JoinedOutput:
    """One attention output of every pass: its weights once, by reference; what it holds of tokens by rows."""

    def __init__(self, first: AttentionOutput) -> None:
        self._first = replace(first, residual=_no_rows_yet(first.residual), projected=_no_rows_yet(first.projected))
        if first.scaling is not None:
            scaling = first.scaling
            empty = replace(scaling, scale=_no_rows_yet(scaling.scale), added=_no_rows_yet(scaling.added))
            self._first = replace(self._first, scaling=empty)
        self._rows = {name: Rows() for name in _output_rows_of_step(first)}

    def add(self, output: AttentionOutput | UnverifiedOutput) -> UnverifiedOutput | None:
        """Add a pass's attention output; returns why it cannot be joined, where it cannot."""
        if isinstance(output, UnverifiedOutput):
            return output
        rows, first = _output_rows_of_step(output), self._first
        shape, weight = (output.kind, set(rows)), output.weight.data_ptr()
        if shape != (first.kind, set(self._rows)) or weight != first.weight.data_ptr():
            return UnverifiedOutput("what stands around its attention changes from token to token")
        for name, tensor in rows.items():
            self._rows[name].add(tensor)
        return None

    def whole(self) -> AttentionOutput:
        """Return the joined attention output."""
        rows = {name: kept.whole() for name, kept in self._rows.items()}
        scaling = self._first.scaling
        if scaling is not None:
            scaling = replace(scaling, scale=rows["scale"], added=rows["added"])
        return replace(self._first, residual=rows["residual"], projected=rows["projected"], scaling=scaling)


def _of_rows(changes: tuple[HeadAblation | CallPatch, ...], rows: list[int]) -> tuple[HeadAblation | CallPatch, ...]:
    """The changes of a whole call's outputs, numbered as in some of its rows alone."""
    parts: list[HeadAblation | CallPatch] = []
    for change in changes:
        if isinstance(change, HeadAblation):
            parts.append(change)
        elif change.what == "head_outputs":
            for n, row in enumerate(rows):
                part = change.at(row, 1)
                if part is not None:
                    parts.append(replace(part, positions=(n,)))
    return tuple(parts)


def _output_rows_of_step(output: AttentionOutput) -> dict[str, Tensor]:
    """What an attention output holds for each token, (1, L, ·)."""
    rows = {"residual": output.residual, "projected": output.projected}
    if output.scaling is not None:
        rows |= {"scale": output.scaling.scale, "added": output.scaling.added}
    return rows


def _no_rows_yet(rows: Tensor) -> Tensor:
    """No rows of that shape, so that those of the first pass are not kept alive."""
    return rows.new_empty(1, 0, rows.shape[-1])
