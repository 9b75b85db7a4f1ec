"""Attention calls of every kind, drawn at random, and what a straightforward computation gives for them."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, reduce
from operator import and_
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

from regard.attention import masks, reference
from regard.attention.attention_map import MAP_TYPES, AttentionMap, map_fields
from regard.attention.kernels import dispatch, statistics
from regard.attention.reference import Reference
from regard.tensor_file import Packer, unpack

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
PRIMES = (1, 2, 3, 5, 7, 11, 13, 17)


@dataclass
class Case:
    """One call of `regard.attend`; seen is what the reference gets where `attend` is given a specification.

    A specification is put together from its parts at the first use, outside the strategy: the run-time checks of
    annotations draw random numbers, which hypothesis does not like to see in there.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    plain: dict[str, Any] = field(default_factory=dict)
    seen: dict[str, Any] = field(default_factory=dict)
    parts: list[tuple[Callable[..., masks.Mask], Any]] = field(default_factory=list)

    def __repr__(self) -> str:
        shapes = {name: (tuple(t.shape), t.stride(), t.dtype) for name, t in vars(self).items() if hasattr(t, "stride")}
        told = self.plain | {f"mask {n}": of for n, (_, of) in enumerate(self.parts)}
        options = {k: (tuple(v.shape), v.dtype) if isinstance(v, Tensor) else v for k, v in told.items()}
        return f"Case({shapes}, {options})"

    @cached_property
    def options(self) -> dict[str, Any]:
        """What `attend` is given."""
        if not self.parts:
            return self.plain
        return self.plain | {"mask": reduce(and_, (make(of) for make, of in self.parts))}

    @property
    def told(self) -> dict[str, Any]:
        """The options in the reference's words."""
        return self.plain | self.seen

    @cached_property
    def largest(self) -> float:
        """The largest sum of magnitudes that a score is added up from: what its rounding is relative to."""
        scale = self.plain.get("scale", self.query.shape[-1] ** -0.5)
        key = self.key.repeat_interleave(self.query.shape[1] // self.key.shape[1], 1)
        sums = self.query.double().abs() @ key.double().abs().mT
        return abs(scale) * float(sums.max()) if sums.numel() else 0.0

    def oracle(self) -> Reference:
        """Everything, in float64; computed once."""
        return self._oracle

    @cached_property
    def _oracle(self) -> Reference:
        return reference.attention(self.query, self.key, self.value, **self.told)


@contextmanager
def cpu_tiles_at_any_size() -> Iterator[None]:
    """The CPU's own kernels take every call that they can compute, not only those of a size at which they win."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("CPU_QUERIES", "CPU_KEYS", "CPU_SCORES", "CPU_SCORES_IN_ALL", "CPU_SPEED"):
            patch.setattr(dispatch, name, 0)
        patch.setattr(statistics, "CPU_SCORES", 0)
        yield


def naive(case: Case, dtype: torch.dtype) -> Reference:
    """The same as the reference, as anyone would write it in this dtype: n×n, torch.softmax."""
    query, key, value = (t.to(dtype) for t in (case.query, case.key, case.value))
    oracle, options = case.oracle(), case.told
    share = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(share, 1), value.repeat_interleave(share, 1)
    scale, softcap = options.get("scale"), options.get("softcap")
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    if options.get("bias") is not None:
        scores = scores + options["bias"].to(dtype)
    scores = scores.masked_fill(oracle.scores == -torch.inf, -torch.inf)
    sinks = options.get("sinks")
    sink = torch.full((query.shape[1],), -torch.inf) if sinks is None else sinks
    joined = torch.cat([scores, sink.to(dtype)[None, :, None, None].expand(*scores.shape[:3], 1)], -1)
    nothing = (joined == -torch.inf).all(-1, keepdim=True)
    shares = joined.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)
    lse = joined.logsumexp(-1)
    return Reference(shares[..., :-1] @ value, lse, oracle.valid, scores, shares[..., :-1], shares[..., -1])


def worst(given: Tensor, right: Tensor) -> float:
    """The largest error; equal infinities have none, a NaN on one side alone is infinite."""
    given, right = given.double(), right.double()
    assert given.shape == right.shape, f"{tuple(given.shape)} is not {tuple(right.shape)}"
    if (given.isnan() != right.isnan()).any():
        return float("inf")
    gap = torch.where((given == right) | right.isnan(), 0.0, (given - right).abs())
    return float(gap.nan_to_num(torch.inf).max()) if gap.numel() else 0.0


def check(name: str, given: Tensor, plain: Tensor, right: Tensor, case: Case, dtype: torch.dtype) -> None:
    """Fail where an error is more than twice that of the plain computation, and more than rounding can be blamed for.

    A plain computation may be lucky in the few numbers of a small case: one rounding of the largest score is free.
    """
    rounding = 2 * torch.finfo(dtype).eps * case.largest
    known = right[right.isfinite()].abs()
    size = max(1.0, float(known.max()) if known.numel() else 0.0)
    allowed = 2 * worst(plain, right) + ((1e-10 if dtype == torch.float64 else 1e-6) + rounding) * size
    error = worst(given, right)
    assert error <= allowed, f"{name}: error {error:.3g}, allowed {allowed:.3g}"


def working(dtype: torch.dtype) -> torch.dtype:
    """What weights and statistics are computed in."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def random(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    """Normal numbers that depend on the seed alone."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def strided(tensor: Tensor, layout: str) -> Tensor:
    """The same shape in another layout; expanded takes the values of the first head everywhere."""
    if layout == "last":
        wide = tensor.new_full((*tensor.shape[:-1], 2 * tensor.shape[-1]), 7.0)
        wide[..., ::2] = tensor
        return wide[..., ::2]
    if layout == "transposed":
        return tensor.transpose(1, 2).contiguous().transpose(1, 2)
    if layout == "columns":
        return tensor.mT.contiguous().mT
    if layout == "expanded":
        return tensor[:, :1].expand_as(tensor)
    return tensor


@st.composite
def cases(draw: Callable[..., Any], dtypes: tuple[torch.dtype, ...] = DTYPES, empty: bool = False) -> Case:
    """Calls over prime sizes, layouts, dtypes, masks, biases, bands and extremes."""
    sizes = draw(st.permutations(PRIMES))
    batch, groups = draw(st.sampled_from((1, 2, 3))), draw(st.sampled_from((1, 2, 3)))
    heads = groups * draw(st.sampled_from((1, 2, 3)))
    length, size, width = sizes[:3]
    value_width = draw(st.sampled_from((width, sizes[3])))
    if empty:
        zero = draw(st.sampled_from(("batch", "length", "size", "value")))
        batch, length = (0 if zero == "batch" else batch), (0 if zero == "length" else length)
        size, value_width = (0 if zero == "size" else size), (0 if zero == "value" else value_width)
    dtype, seed = draw(st.sampled_from(dtypes)), draw(st.integers(0, 2**16))
    strength = draw(st.sampled_from((0.0, 1.0, 1.0, 5.0, 100.0)))  # squared: scores of 0, around 1, 25 and 1e4
    layouts = st.sampled_from(("plain", "last", "transposed", "columns", "expanded"))
    query = strided((random(seed, batch, heads, length, width) * strength).to(dtype), draw(layouts))
    key = strided((random(seed + 1, batch, groups, size, width) * strength).to(dtype), draw(layouts))
    value = strided(random(seed + 2, batch, groups, size, value_width, dtype=dtype), draw(layouts))
    case = Case(query, key, value)
    shape = (batch, heads, length, size)

    def broadcastable() -> list[int]:
        kept = [n if draw(st.booleans()) else 1 for n in shape]
        return kept[draw(st.integers(0, 4)) :]

    options = case.plain
    kind = draw(st.sampled_from((None, None, "dense", "padding", "function", "all")))
    answers: list[Tensor] = []
    if kind in ("dense", "all"):
        answers.append(random(seed + 3, *broadcastable()) > draw(st.sampled_from((-1.0, 0.5, 2.0))))
        case.parts.append((masks.dense, answers[-1]))
    if kind in ("padding", "all"):
        keys = random(seed + 4, draw(st.sampled_from((1, batch))), size) > -0.5
        answers.append(keys[:, None, None, :])
        case.parts.append((masks.padding, keys))
    if kind in ("function", "all"):
        answers.append((2 * torch.arange(length)[:, None] + torch.arange(size)) % 3 != 0)
        case.parts.append((masks.function, lambda i, j: (2 * i + j) % 3 != 0))
    if answers:
        case.seen["mask"] = reduce(and_, answers)
    if kind == "dense" and draw(st.booleans()):
        options["mask"] = answers[0]
        case.parts.clear()
    if draw(st.integers(0, 2)) == 0:
        options["bias"] = random(seed + 5, *broadcastable(), dtype=draw(st.sampled_from((dtype, torch.float32)))) * 3
    options["causal"] = draw(st.booleans())
    if draw(st.integers(0, 2)) == 0:
        sides = st.one_of(st.none(), st.integers(0, 5))
        options["window"] = (draw(sides), draw(sides))
    if draw(st.integers(0, 2)) == 0:
        options["offset"] = draw(st.integers(-7, 7))
    if draw(st.integers(0, 3)) == 0:
        options["scale"] = draw(st.sampled_from((0.3, 1.0, -0.5)))
    if draw(st.integers(0, 3)) == 0:
        options["softcap"] = draw(st.sampled_from((2.0, 30.0)))
    if draw(st.integers(0, 3)) == 0:
        options["sinks"] = random(seed + 6, heads, dtype=torch.float32)
    return case


def as_from_a_file(seen: AttentionMap) -> AttentionMap:
    """The map that a file would hold of this one."""
    packer = Packer()
    packed = json.loads(json.dumps(packer.pack("map", map_fields(seen))))
    return unpack(packed, packer.tensors, MAP_TYPES | {"map": AttentionMap.of_fields})  # type: ignore[no-any-return]
