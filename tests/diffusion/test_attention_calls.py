import pytest
import torch
from torch import nn
from torch.nn import functional

import regard
from regard.attention.attention_map import AttentionMap
from regard.diffusion.attention_calls import answered_attention


class Attention(nn.Module):
    """As diffusers' attention modules are: a processor computes, on what the module was called with."""

    def __init__(self, processor: object) -> None:
        super().__init__()
        self.processor = processor

    def forward(self, query: torch.Tensor, keys: torch.Tensor | None = None, **given: object) -> torch.Tensor:
        keys = query if keys is None else keys
        return self.processor(query, keys, **given)  # type: ignore[operator]


class Two(nn.Module):
    def __init__(self, processor: object) -> None:
        super().__init__()
        self.first, self.second = Attention(processor), Attention(functional.scaled_dot_product_attention)

    def forward(self, query: torch.Tensor, keys: torch.Tensor, **given: object) -> torch.Tensor:
        own = self.first(query)
        return functional.scaled_dot_product_attention(own, own, own) + self.second(own, keys, **given)


def torchs(query: torch.Tensor, keys: torch.Tensor, **given: object) -> torch.Tensor:
    return functional.scaled_dot_product_attention(query, keys, keys, **given)  # type: ignore[arg-type]


def eager(query: torch.Tensor, keys: torch.Tensor, **given: object) -> torch.Tensor:
    return (query @ keys.mT).softmax(-1) @ keys


@pytest.mark.parametrize("how", ["plain", "mask", "bias", "causal"])
def test_calls_inside_attention_modules_are_answered_and_told(how: str) -> None:
    torch.manual_seed(1)
    query, keys = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 11, 5)
    may = torch.rand(2, 1, 7, 11) > 0.3
    given = {"plain": {}, "mask": {"attn_mask": may}, "bias": {"attn_mask": torch.randn(2, 1, 7, 11)},
             "causal": {"is_causal": True}}[how]  # fmt: skip
    model = Two(torchs)
    model.second.processor = torchs
    alone = model(query, keys, **given)
    seen: dict[str, AttentionMap] = {}

    def see(path: str, of: object, weights: AttentionMap) -> None:
        seen[path] = weights

    with answered_attention(model, see), regard.record() as calls:
        answered = model(query, keys, **given)
    torch.testing.assert_close(answered, alone, atol=1e-6, rtol=1e-5)
    assert list(seen) == ["first", "second"] == [path for path, _ in calls], "that of no attention module is left alone"
    own = torchs(query, query)
    scores = own.double() @ keys.double().mT / 5**0.5
    if how == "causal":  # torch's mask: query 0 stands at key 0
        scores = scores.masked_fill(~torch.ones(7, 11, dtype=torch.bool).tril(), -torch.inf)
    elif how == "mask":
        scores = scores.masked_fill(~may, -torch.inf)
    elif how == "bias":
        scores = scores + given["attn_mask"].double()  # type: ignore[union-attr]
    torch.testing.assert_close(seen["second"][:].double(), scores.softmax(-1), atol=1e-6, rtol=1e-5)
    with answered_attention(model, see):
        pass
    assert torch.equal(model(query, keys, **given), alone), "nothing is left of it"


def test_what_computes_attention_otherwise_is_refused_by_name() -> None:
    model = Two(eager)
    query, keys = torch.randn(1, 1, 3, 5), torch.randn(1, 1, 2, 5)
    with (
        pytest.raises(regard.RegardError, match=r"first: its processor function does not compute attention by torch"),
        answered_attention(model, lambda path, given, weights: None),
    ):
        model(query, keys)
    with (
        pytest.raises(regard.RegardError, match="a Linear has no attention modules of diffusers"),
        answered_attention(nn.Linear(2, 3), lambda path, given, weights: None),
    ):
        pass
