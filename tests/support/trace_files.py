"""Traces drawn at random, with every kind of tensor that a file may hold; comparing two."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import strategies as st
from torch import Tensor

import regard
from regard.attention.attention_map import AttentionMap
from regard.attention.masks import Edges, Mask
from regard.attention.scores import ScoreRule
from regard.text.tokens import Token
from regard.trace.attention_output import AttentionOutput, Norm, UnverifiedOutput
from regard.trace.layers import Layers
from regard.trace.status import Status
from regard.trace.trace import PairTrace, Trace

WIDTH = 7  # M


def refused(says: str, call: Any, *given: Any, **more: Any) -> None:
    with pytest.raises(regard.RegardError, match=says) as caught:
        call(*given, **more)
    assert "\n" not in str(caught.value)


class Maker:
    """Makes traces from one seed; every choice is the strategy's. one_call_each: whether every layer makes one call."""

    def __init__(self, choose: Any, *, one_call_each: bool = False) -> None:
        self.choose, self.one_call_each = choose, one_call_each
        self.random = torch.Generator().manual_seed(choose(st.integers(0, 2**31)))

    def normal(self, *shape: int) -> Tensor:
        return torch.randn(*shape, generator=self.random)

    def strided(self, *shape: int) -> Tensor:
        """Sometimes with axes that lie in another order in memory, as a model's heads do."""
        if self.choose(st.booleans()):
            return self.normal(*shape[:-3], shape[-2], shape[-3], shape[-1]).transpose(-2, -3)
        return self.normal(*shape)

    def map(self, heads: int, groups: int, length: int, size: int) -> AttentionMap:
        pick = self.choose
        mask = None
        if pick(st.booleans()):
            dense = self.normal(1, pick(st.sampled_from([1, heads])), length, size) > -1
            gone = Edges((1, heads, length, size), heads=(heads - 1,), queries=(0,), keys=(size - 1,))
            mask = Mask(
                high=pick(st.sampled_from([None, size - length])),
                keys=pick(st.sampled_from([None, torch.arange(size)[None] > 0])),
                dense=(dense,) * pick(st.integers(0, 1)),
                removed=(gone,) * pick(st.integers(0, 1)),
            )
        bias = self.normal(1, heads, 1, size) if pick(st.booleans()) else None
        sinks = self.normal(heads) if pick(st.booleans()) else None
        rule = ScoreRule(0.3, pick(st.sampled_from([None, 5.0])), bias, mask, sinks)
        offset = size - length
        return AttentionMap(
            self.strided(1, heads, length, 5), self.strided(1, groups, size, 5), rule, offset=offset, ndim=3
        )

    def block(self, heads: int, width: int, length: int) -> AttentionOutput | UnverifiedOutput:
        if self.choose(st.integers(0, 3)) == 0:
            return UnverifiedOutput("a gate stands between")
        norm = Norm(self.normal(WIDTH), None, 1e-12) if self.choose(st.booleans()) else None
        kind = "pre-norm" if norm is None else "post-norm"
        weight = self.normal(WIDTH, heads * width)
        if self.choose(st.booleans()):
            weight = self.normal(heads * width, WIDTH).mT  # as a Conv1D's
        return AttentionOutput(
            kind, weight, self.normal(WIDTH), self.normal(length, WIDTH), self.normal(length, WIDTH), norm
        )

    def trace(self, across: int = 0) -> Trace:
        pick = self.choose
        length, groups = pick(st.sampled_from([1, 3, 11])), pick(st.sampled_from([1, 2]))
        heads, layers = groups * pick(st.sampled_from([1, 3])), pick(st.integers(1, 3))
        tokens = tuple(Token(n, "ä", n, n + 1, None if n == 0 else n, n == 0) for n in range(length))
        states = tuple(self.normal(length, WIDTH) for _ in range(layers + 1))
        parts = ("token_embeddings", "segment", "input")
        embedded = {name: self.normal(length, 3) if pick(st.booleans()) else None for name in parts}
        status = Status("made", ("naive",), "cpu", "float32", 1e-7, 4, None, ("☃",), notes=("a note",), seconds=0.1)

        def stack(size: int, count: int) -> tuple[Any, Any, Any]:
            made = self.calls(count)
            maps = {call: self.map(heads, groups, length, size) for call in made}
            values = {call: self.strided(groups, size, 2) if pick(st.booleans()) else None for call in made}
            blocks = {call: self.block(heads, 2, length) for call in made}
            if made == [(n, 0) for n in range(count)]:
                return tuple(maps.values()), tuple(values.values()), tuple(blocks.values())
            named = zip(("maps", "values", "outputs"), (maps, values, blocks), strict=True)
            first, second, third = (Layers(what, count, items, made=made) for what, items in named)
            return first, second, third

        attention, values, attention_outputs = stack(length, layers)
        cross, cross_values, cross_attention_outputs = stack(across, layers) if across else ((), (), ())
        return Trace(
            text="ä" * length,
            tokens=tokens,
            position_embeddings=None,
            **embedded,
            hidden_states=states,
            last_hidden_state=states[-1] if pick(st.booleans()) else self.normal(length, WIDTH),
            logits=self.normal(length, 13) if pick(st.booleans()) else None,
            attention=attention,
            values=values,
            status=status,
            cross=cross,
            cross_values=cross_values,
            attention_outputs=attention_outputs,
            cross_attention_outputs=cross_attention_outputs,
        )

    def calls(self, layers: int) -> list[tuple[int, int]]:
        """(layer, which of its calls) of what layers made: one each, or as in hybrids and where they make several."""
        counts = [1] * layers
        if not self.one_call_each and self.choose(st.booleans()):
            counts = [self.choose(st.integers(0, 2)) for _ in range(layers)]
            counts[-1] = max(1, counts[-1])
        return [(layer, nth) for layer, count in enumerate(counts) for nth in range(count)]

    def any(self) -> Trace | PairTrace:
        first = self.trace()
        return PairTrace(first, self.trace(len(first.tokens))) if self.choose(st.booleans()) else first


def same_tensor(a: Tensor | None, b: Tensor | None) -> None:
    assert (a is None) == (b is None)
    if a is not None and b is not None:
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def same(a: Any, b: Any, *, attention_outputs: bool = False) -> None:
    """Everything that a file holds by default is the same, weights within 1e-6; with blocks, they as well."""
    if isinstance(a, PairTrace):
        assert isinstance(b, PairTrace)
        same(a.encoder, b.encoder, attention_outputs=attention_outputs)
        same(a.decoder, b.decoder, attention_outputs=attention_outputs)
        return
    assert isinstance(b, regard.Trace)
    assert (a.text, a.tokens, a.status) == (b.text, b.tokens, b.status)
    for name in ("token_embeddings", "position_embeddings", "segment", "input", "last_hidden_state", "logits"):
        same_tensor(getattr(a, name), getattr(b, name))
    for x, y in zip(a.hidden_states, b.hidden_states, strict=True):
        same_tensor(x, y)
    for maps, values in (("attention", "values"), ("cross", "cross_values")):
        assert getattr(a, maps).calls == getattr(b, maps).calls
        assert getattr(a, maps).made == getattr(b, maps).made
        for x, y in items(getattr(a, maps), getattr(b, maps)):
            assert (x.offset, x.shape, x.dtype) == (y.offset, y.shape, y.dtype)
            torch.testing.assert_close(x.dense(), y.dense(), atol=1e-6, rtol=0)
        for x, y in items(getattr(a, values), getattr(b, values)):
            same_tensor(x, y)
    for name in ("attention_outputs", "cross_attention_outputs"):
        if not attention_outputs:
            assert not getattr(b, name)
            continue
        for x, y in items(getattr(a, name), getattr(b, name)):
            same_fields(x, y)


def items(a: Any, b: Any) -> Iterator[tuple[Any, Any]]:
    """The items of two sequences by layer, side by side."""
    assert (len(a), a.calls) == (len(b), b.calls)
    return ((a[call], b[call]) for call in a.calls)


def same_fields(a: Any, b: Any) -> None:
    """Two dataclasses of tensors are the same."""
    assert type(a) is type(b)
    for name, x in vars(a).items():
        y = getattr(b, name)
        if isinstance(x, Tensor):
            same_tensor(x, y)
        elif hasattr(x, "__dataclass_fields__"):
            same_fields(x, y)
        else:
            assert x == y
