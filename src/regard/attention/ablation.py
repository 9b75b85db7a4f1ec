"""Ablate or patch heads and edges of the attention calls inside an `ablating` block.

with ablating([HeadAblation(layers={3}, heads={5}), EdgeAblation(queries=(11,), keys=(10,))]) as block:
    model(**inputs)
block.unmet          # ablations that applied to no call, for example because the layer or path doesn't exist

An ablated head keeps its weights, but its output is zero. An ablated edge has the score -inf, so the softmax gives its
weight to the remaining keys and sinks. A query that loses every key has output and weights 0. The list may also contain
`CallPatch` items. Changes at the same position are applied in the list's order.

A patch replaces rows of a call:

    what          rows                 replaced                                 before or after the softmax
    ------------  -------------------  ---------------------------------------  ---------------------------
    values        (n, k, E), key heads value vectors of k keys                  neither: what weights multiply
    weights       (n, k, S)            weights of k queries, and their output   in place of the softmax
    head_outputs  (n, k, E)            weights @ values of k queries            after

No L × S tensor is created: the log weights of each patched query are appended to the keys of the call's map as an extra
dimension, which only that query selects.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.masks import select
from regard.attention.scores import ScoreRule

What = Literal["values", "head_outputs", "weights"]
NOTHING = -3e4  # score of a zero weight in a patched row: exp(NOTHING) is 0 in every dtype


class PatchError(ValueError):
    """Raised if a patch doesn't fit a call. The message gives the reason."""


@dataclass(frozen=True, kw_only=True, eq=False)
class CallPatch:
    """Replacement rows for some positions of a call.

    rows: (heads or 1, positions or 1, width). heads: query head numbers, or key head numbers for "values"; None
    for all. layers, batch: as in `HeadAblation`. Rows of weights may be shorter than S: the text's keys come first.
    """

    what: What
    rows: Float[Tensor, "n k w"]
    positions: tuple[int, ...]
    layers: tuple[int | str | tuple[str, int], ...] | None = None
    heads: tuple[int, ...] | None = None
    batch: tuple[int, ...] | None = None

    @property
    def queries(self) -> tuple[int, ...] | None:
        """Return the patched positions if they are query positions, else None."""
        return None if self.what == "values" else self.positions

    @property
    def keys(self) -> tuple[int, ...] | None:
        """Return the patched positions if they are key positions, else None."""
        return self.positions if self.what == "values" else None

    def put(self, tensor: Float[Tensor, "B n L w"]) -> None:
        """Write the patch's rows into a call's tensor, in place."""
        heads = tuple(range(tensor.shape[1])) if self.heads is None else self.heads
        rows = self.rows.to(tensor)
        if rows.shape[-1] not in (1, tensor.shape[-1]) or rows.shape[0] not in (1, len(heads)):
            raise PatchError(
                f"got {rows.shape[0]} heads of width {rows.shape[-1]}, but the layer has {len(heads)} of width "
                f"{tensor.shape[-1]}"
            )
        heads_index = torch.tensor(heads, device=tensor.device)[:, None]
        positions = torch.tensor(self.positions, device=tensor.device)
        for text in range(tensor.shape[0]) if self.batch is None else self.batch:
            tensor[text][heads_index, positions] = rows.expand(len(heads), len(positions), -1)


class GivenWeights:
    """Patched rows of weights by (text, head, query). The last patch of a row wins."""

    def __init__(self) -> None:
        self.rows: dict[tuple[int, int, int], Float[Tensor, " S"]] = {}

    def take(self, patch: CallPatch, shape: tuple[int, int, int, int]) -> None:
        """Store the rows of a patch for a call of this shape (B, H, L, S)."""
        batch, heads, _, size = shape
        numbers = tuple(range(heads)) if patch.heads is None else patch.heads
        rows = patch.rows
        if rows.shape[-1] > size or rows.shape[0] not in (1, len(numbers)):
            raise PatchError(
                f"got {rows.shape[0]} heads of {rows.shape[-1]} weights, but the layer has {len(numbers)} heads of "
                f"{size}"
            )
        rows = torch.nn.functional.pad(rows, (0, size - rows.shape[-1])).expand(len(numbers), -1, -1)
        for text in range(batch) if patch.batch is None else patch.batch:
            for n, head in enumerate(numbers):
                for k, token in enumerate(patch.positions):
                    self.rows[text, head, token] = rows[n, k]

    def remove(self, batch: Sequence[int], heads: Sequence[int], queries: Sequence[int], keys: Sequence[int]) -> None:
        """Leave edges (queries × keys) out of the rows. The rest of each row, including sinks, takes over their weight.

        batch, heads: the numbers of the texts and heads with these edges.
        """
        for (text, head, token), row in self.rows.items():
            if text in batch and head in heads and token in queries:
                columns = list(keys)
                remaining = 1 - row[columns].sum()
                row = row.clone()
                row[columns] = 0.0
                self.rows[text, head, token] = row / remaining if float(remaining) > 0 else row

    def check(self, rule: ScoreRule, device: torch.device) -> None:
        """Check that rows sum to 1, that they don't use masked keys, and that the rule supports patched weights."""
        if rule.softcap is not None or rule.sinks is not None:
            feature = "a softcap" if rule.softcap is not None else "sinks"
            raise PatchError(f"the model's scores have {feature}, so rows of its weights can't be replaced")
        for (text, head, token), row in self.rows.items():
            total = float(row.sum())
            if not abs(total - 1) <= 1e-3 or float(row.min()) < 0:
                raise PatchError(f"the row of token {token} sums to {total:.3g}, expected 1")
            region = slice(text, text + 1), slice(head, head + 1), slice(token, token + 1), slice(0, len(row))
            allowed = None if rule.mask is None else rule.mask.tile(*region, device)
            if allowed is not None and bool((row.to(device) * ~allowed.reshape(-1)).any()):
                raise PatchError(
                    f"token {token} can't attend to all keys of the given row: some are later keys or ablated edges"
                )

    def put_outputs(
        self, output: Float[Tensor, "B H L E"], value: Float[Tensor, "B G S E"]
    ) -> Float[Tensor, "B H L E"]:
        """Write weights @ values of the patched rows into the output, in place, and return it."""
        share = output.shape[1] // value.shape[1]
        groups: dict[tuple[int, int], list[int]] = {}
        for text, head, token in self.rows:
            groups.setdefault((text, head), []).append(token)
        for (text, head), tokens in groups.items():
            rows = torch.stack([self.rows[text, head, token] for token in tokens]).to(value.device, torch.float32)
            values = value[text, head // share]
            exact = values.float() if values.dtype.itemsize < 4 else values
            output[text, head, torch.tensor(tokens, device=output.device)] = (rows.to(exact.dtype) @ exact).to(output)
        return output

    def as_scores(
        self, query: Float[Tensor, "B H L D"], key: Float[Tensor, "B G S D"], rule: ScoreRule
    ) -> tuple[Float[Tensor, "B H L d"], Float[Tensor, "B G S d"]]:
        """Return queries and keys whose scores are the logs of the patched rows. Other rows are unchanged.

        The query of a patched row is zero except in one extra dimension, in which the keys hold the row's log weights.
        """
        batch, heads, length, _ = query.shape
        groups, size = key.shape[1], key.shape[2]
        share = heads // groups
        columns: dict[tuple[int, int], list[tuple[int, int]]] = {}  # (text, key head) -> [(head, query)]
        for text, head, token in self.rows:
            columns.setdefault((text, head // share), []).append((head, token))
        extra = max(map(len, columns.values()))
        query, key = (tensor if tensor.dtype == torch.float64 else tensor.float() for tensor in (query, key))
        wide_query = torch.cat([query, query.new_zeros(batch, heads, length, extra)], -1)
        wide_key = torch.cat([key, key.new_zeros(batch, groups, size, extra)], -1)
        width = query.shape[-1]
        for (text, group), tokens in columns.items():
            for n, (head, token) in enumerate(tokens):
                row = self.rows[text, head, token].to(key.device, torch.float32)
                logs = torch.where(row > 0, row.log(), NOTHING)
                if rule.bias is not None:
                    region = (slice(text, text + 1), slice(head, head + 1), slice(token, token + 1), slice(0, size))
                    bias = select(rule.bias, *region).reshape(-1)
                    logs = logs - torch.where(torch.isfinite(bias), bias, 0.0)
                wide_query[text, head, token] = 0.0
                wide_query[text, head, token, width + n] = 1.0 / rule.scale
                wide_key[text, group, :, width + n] = logs.to(key.dtype)
        return wide_query, wide_key


Call = tuple[str, int]  # (path, n-th call of that path inside the block)
CallPlace = int | str | Call  # a layer number, a call's path or an enclosing scope, or (path, n)
Names = Callable[[str, int], str]  # the name of a path's n-th call


@dataclass(frozen=True, kw_only=True)
class HeadAblation:
    """An ablation that sets the output of heads to zero.

    layers: the calls, each as a layer number, a call's path, an enclosing scope ("decoder"), or (path, n) for the n-th
    call of a path inside the block (layers that share weights have the same path). heads, batch: head and text numbers
    from 0. None means all.
    """

    layers: Collection[CallPlace] | None = None
    heads: Collection[int] | None = None
    batch: Collection[int] | None = None

    def __post_init__(self) -> None:
        _sort_numbers(self)


@dataclass(frozen=True, kw_only=True)
class EdgeAblation:
    """An ablation that sets the scores between all these queries and all these keys to -inf.

    queries, keys: rows and columns of the call's matrix, from 0, including padding. Other fields: see `HeadAblation`.
    """

    layers: Collection[CallPlace] | None = None
    heads: Collection[int] | None = None
    queries: Collection[int] | None = None
    keys: Collection[int] | None = None
    batch: Collection[int] | None = None

    def __post_init__(self) -> None:
        _sort_numbers(self)


Ablation = HeadAblation | EdgeAblation | CallPatch


class OpenAblations:
    """The ablations of one block. It tracks which of them have applied to a call."""

    def __init__(self, ablations: Sequence[Ablation], names: Names | None = None) -> None:
        self.ablations, self._names = tuple(ablations), names
        self._seen: dict[str, int] = {}
        self._met: set[int] = set()

    @property
    def unmet(self) -> tuple[Ablation, ...]:
        """Return the ablations that haven't applied to any attention call so far."""
        return tuple(ablation for n, ablation in enumerate(self.ablations) if n not in self._met)

    def match(self, path: str, layer: int | None) -> list[Ablation]:
        """Register the current call. Returns the ablations that apply to it."""
        nth = self._seen.get(path, 0)
        self._seen[path] = nth + 1
        if self._names is not None:
            path, layer = self._names(path, nth), None
        matches = [n for n, ablation in enumerate(self.ablations) if _applies(ablation, path, layer, nth)]
        self._met.update(matches)
        return [self.ablations[n] for n in matches]


open_blocks: ContextVar[tuple[OpenAblations, ...]] = ContextVar("regard_ablations", default=())  # outermost first


@contextmanager
def ablating(ablations: Sequence[Ablation], names: Names | None = None) -> Iterator[OpenAblations]:
    """Apply ablations to all attention calls inside the block, in this thread or task.

    Blocks can be nested. All their ablations apply.

    names: returns the name of a path's n-th call, for calls that share a path. The layers of an ablation are then such
    names or their dotted prefixes, not numbers. It is called once per call, in order.
    """
    token = open_blocks.set((*open_blocks.get(), OpenAblations(ablations, names)))
    try:
        yield open_blocks.get()[-1]
    finally:
        open_blocks.reset(token)


def _applies(ablation: Ablation, path: str, layer: int | None, nth: int) -> bool:
    return ablation.layers is None or any(
        name in (layer, path, (path, nth)) or (isinstance(name, str) and path.startswith(f"{name}."))
        for name in ablation.layers
    )


def _sort_numbers(ablation: Ablation) -> None:
    for field in fields(ablation):
        numbers = getattr(ablation, field.name)
        if numbers is not None:
            values = numbers if field.name == "layers" else sorted(set(numbers))
            object.__setattr__(ablation, field.name, tuple(values))
