"""What does not fit is refused with the argument's name, what was given and what is needed."""

import re
from typing import Any

import pytest
import torch

import regard
from regard.attention import masks
from tests.attention.cases import random

pytestmark = pytest.mark.usefixtures("no_checks_of_annotations")

RIGHT = {"query": (2, 4, 5, 8), "key": (2, 2, 7, 8), "value": (2, 2, 7, 3)}


def call(**changes: Any) -> regard.Attention:
    return regard.attend(**{name: random(0, *shape) for name, shape in RIGHT.items()} | changes)


@pytest.mark.parametrize(
    ("changes", "error", "needed"),
    [
        ({"dropout": -0.1}, ValueError, "dropout: given -0.1, needs to be a probability"),
        ({"dropout": 1.5}, ValueError, "dropout: given 1.5"),
        ({"dropout": float("nan")}, ValueError, "dropout: given nan"),
        ({"dropout": "half"}, TypeError, "dropout: given str, needs a number"),
        ({"scale": float("inf")}, ValueError, "scale: given inf, needs a finite number"),
        ({"scale": float("nan")}, ValueError, "scale: given nan, needs a finite number"),
        ({"scale": "big"}, TypeError, "scale: given str, needs a number"),
        ({"softcap": 0}, ValueError, "softcap: given 0, needs to be above 0"),
        ({"softcap": -2.0}, ValueError, "softcap: given -2.0, needs to be above 0"),
        ({"softcap": float("nan")}, ValueError, "softcap: given nan"),
        ({"softcap": True}, TypeError, "softcap: given bool, needs a number"),
        ({"window": 3}, TypeError, "window: given 3, needs (left, right)"),
        ({"window": (1.0, 2)}, TypeError, "window: given (1.0, 2), needs (left, right)"),
        ({"window": (1, 2, 3)}, TypeError, "window: given (1, 2, 3), needs (left, right)"),
        ({"window": (-1, 0)}, ValueError, "window: left is -1, it needs to be 0 or more"),
        ({"offset": 1.5}, TypeError, "offset: given float, needs an integer"),
        ({"is_causal": True}, TypeError, "is_causal: use causal="),
        ({"attn_mask": None}, TypeError, "attn_mask: use mask="),
        ({"key_padding_mask": None}, TypeError, "key_padding_mask: use mask="),
        ({"num_heads": 2}, TypeError, "num_heads: pass query, key and value as (B, H, L, D)"),
        ({"casual": True}, TypeError, "unexpected keyword argument 'casual'"),
        ({"causal": "yes"}, TypeError, "causal: given str, needs True or False"),
        ({"mask": [True]}, TypeError, "mask: given list, needs to be a torch tensor"),
        ({"mask": torch.zeros(5, 7)}, TypeError, "mask: given torch.float32 of shape (5, 7), needs a bool"),
        ({"mask": torch.ones(7, 5).bool()}, ValueError, "mask: given shape (7, 5), needs one that broadcasts"),
        ({"mask": torch.ones(1, 1, 1, 5, 7).bool()}, ValueError, "mask: given shape (1, 1, 1, 5, 7)"),
        ({"mask": regard.masks.padding(torch.ones(2, 5).bool())}, ValueError, "mask: given shape (2, 5)"),
        ({"mask": regard.masks.padding(torch.ones(2, 1).bool())}, ValueError, "mask: its padding has 1 keys"),
        ({"mask": regard.masks.dense(torch.ones(3, 1, 1, 7).bool())}, ValueError, "mask: given shape (3, 1, 1, 7)"),
        ({"bias": torch.ones(5, 7).bool()}, TypeError, "bias: given torch.bool, needs floating-point"),
        ({"bias": torch.ones(3, 7)}, ValueError, "bias: given shape (3, 7), needs one that broadcasts"),
        ({"bias": 1.0}, TypeError, "bias: given float, needs to be a torch tensor"),
        ({"sinks": torch.ones(3)}, ValueError, "sinks: given shape (3,), needs one that broadcasts to (4,)"),
        ({"sinks": torch.ones(4).long()}, TypeError, "sinks: given torch.int64, needs floating-point"),
        ({"sinks": torch.tensor([1.0, float("nan"), 0.0, 0.0])[:, None]}, ValueError, "sinks: given shape (4, 1)"),
        ({"key": random(0, 2, 2, 7, 6)}, ValueError, "key: given width 6, needs 8"),
        ({"key": random(0, 3, 2, 7, 8), "value": random(0, 3, 2, 7, 3)}, ValueError, "key: given a batch of 3"),
        ({"value": random(0, 2, 1, 7, 3)}, ValueError, "value: given 1 heads and 7 positions, needs 2 and 7"),
        ({"value": random(0, 2, 2, 6, 3)}, ValueError, "value: given 2 heads and 6 positions, needs 2 and 7"),
        ({"query": random(0, 2, 3, 5, 8)}, ValueError, "key: given 2 heads, needs a number that divides the query's 3"),
        ({"query": random(0, 2, 4, 5, 0), "key": random(0, 2, 2, 7, 0)}, ValueError, "query: given width 0"),
        ({"query": random(0, 5, 8)}, ValueError, "key: given shape (2, 2, 7, 8), needs 2, 3 or 4 axes"),
        ({"query": random(0, 8)}, ValueError, "query: given shape (8,), needs 2, 3 or 4 axes"),
        ({"key": random(0, 2, 2, 7, 8).float()}, TypeError, "key: given torch.float32, needs to be torch.float64"),
        ({"key": torch.ones(2, 2, 7, 8).long()}, TypeError, "key: given torch.int64, needs to be float64"),
    ],
)  # fmt: skip
def test_refused(changes: dict[str, Any], error: type[Exception], needed: str) -> None:
    with pytest.raises(error, match=re.escape(needed)):
        call(**changes)


@pytest.mark.parametrize(
    ("make", "given", "needed"),
    [
        (masks.padding, [True], "padding: given list, needs a boolean (B, S) tensor"),
        (masks.padding, torch.ones(5), "padding: given torch.float32 of shape (5,), needs"),
        (masks.padding, torch.ones(5).bool(), "padding: given torch.bool of shape (5,), needs"),
        (masks.dense, [True], "mask: given list, needs a boolean tensor of at most 4 axes"),
        (masks.dense, torch.ones(1, 1, 1, 1, 1).bool(), "mask: given torch.bool of shape (1, 1, 1, 1, 1), needs"),
        (masks.function, True, "mask function: given bool, needs a function of query and key positions"),
    ],
)
def test_no_mask(make: Any, given: Any, needed: str) -> None:
    with pytest.raises(TypeError, match=re.escape(needed)):
        make(given)


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_no_tensor(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: given list, needs to be a torch tensor"):
        call(**{name: [[1.0]]})


@pytest.mark.parametrize("name", ["key", "value", "mask", "bias", "sinks"])
def test_another_device(name: str) -> None:
    shapes = RIGHT | {"mask": (5, 7), "bias": (5, 7), "sinks": (4,)}
    elsewhere = torch.empty(shapes[name], device="meta", dtype=torch.bool if name == "mask" else torch.float64)
    with pytest.raises(ValueError, match=f"{name}: given on meta, needs to be on cpu"):
        call(**{name: elsewhere})


def test_a_factor_that_the_dtype_cannot_hold() -> None:
    query = torch.linspace(-1, 1, 12).view(3, 4)
    for name in ("softcap", "scale"):
        with pytest.raises(ValueError, match=f"{name}: given 1e\\+300, needs to be a number that torch.float32 holds"):
            regard.attend(query, query, query, **{name: 1e300})
        with pytest.raises(ValueError, match=f"{name}: given inf, needs a finite number"):
            regard.attend(query, query, query, **{name: 10**400})
    with pytest.raises(ValueError, match="softcap: given 1e-300, needs to be above 0"):
        regard.attend(query, query, query, softcap=1e-300)
    plain = regard.attend(query, query, query)
    capped = regard.attend(query, query, query, softcap=10**30)
    torch.testing.assert_close(capped.output, plain.output)
    torch.testing.assert_close(capped.weights[...], plain.weights[...])
    assert regard.attend(query.double(), query.double(), query.double(), softcap=1e300).output.isfinite().all()
