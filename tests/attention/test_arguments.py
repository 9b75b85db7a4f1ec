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
        ({"dropout": -0.1}, ValueError, "dropout: got -0.1, expected a probability"),
        ({"dropout": 1.5}, ValueError, "dropout: got 1.5"),
        ({"dropout": float("nan")}, ValueError, "dropout: got nan"),
        ({"dropout": "half"}, TypeError, "dropout: got str, expected a number"),
        ({"scale": float("inf")}, ValueError, "scale: got inf, expected a finite number"),
        ({"scale": float("nan")}, ValueError, "scale: got nan, expected a finite number"),
        ({"scale": "big"}, TypeError, "scale: got str, expected a number"),
        ({"softcap": 0}, ValueError, "softcap: got 0, expected a number above 0"),
        ({"softcap": -2.0}, ValueError, "softcap: got -2, expected a number above 0"),
        ({"softcap": float("nan")}, ValueError, "softcap: got nan"),
        ({"softcap": True}, TypeError, "softcap: got bool, expected a number"),
        ({"window": 3}, TypeError, "window: got 3, expected (left, right)"),
        ({"window": (1.0, 2)}, TypeError, "window: got (1.0, 2), expected (left, right)"),
        ({"window": (1, 2, 3)}, TypeError, "window: got (1, 2, 3), expected (left, right)"),
        ({"window": (-1, 0)}, ValueError, "window: left is -1, expected 0 or more"),
        ({"offset": 1.5}, TypeError, "offset: got float, expected an integer"),
        ({"is_causal": True}, TypeError, "is_causal: use causal="),
        ({"attn_mask": None}, TypeError, "attn_mask: use mask="),
        ({"key_padding_mask": None}, TypeError, "key_padding_mask: use mask="),
        ({"num_heads": 2}, TypeError, "num_heads: pass query, key and value as (B, H, L, D)"),
        ({"casual": True}, TypeError, "unexpected keyword argument 'casual'"),
        ({"causal": "yes"}, TypeError, "causal: got str, expected True or False"),
        ({"mask": [True]}, TypeError, "mask: got list, expected a boolean tensor"),
        ({"mask": torch.zeros(5, 7)}, TypeError, "mask: got torch.float32 of shape (5, 7), expected a bool"),
        ({"mask": torch.ones(7, 5).bool()}, ValueError, "mask: got shape (1, 1, 7, 5), expected a shape"),
        ({"mask": torch.ones(1, 1, 1, 5, 7).bool()}, TypeError, "mask: got torch.bool of shape (1, 1, 1, 5, 7)"),
        ({"mask": regard.masks.padding(torch.ones(2, 5).bool())}, ValueError, "mask: got shape (2, 5)"),
        ({"mask": regard.masks.padding(torch.ones(2, 1).bool())}, ValueError, "mask: its padding has 1 keys"),
        ({"mask": regard.masks.dense(torch.ones(3, 1, 1, 7).bool())}, ValueError, "mask: got shape (3, 1, 1, 7)"),
        ({"bias": torch.ones(5, 7).bool()}, TypeError, "bias: got torch.bool, expected floating-point"),
        ({"bias": torch.ones(3, 7)}, ValueError, "bias: got shape (3, 7), expected a shape that broadcasts"),
        ({"bias": 1.0}, TypeError, "bias: got float, expected a torch tensor"),
        ({"sinks": torch.ones(3)}, ValueError, "sinks: got shape (3,), expected a shape that broadcasts to (4,)"),
        ({"sinks": torch.ones(4).long()}, TypeError, "sinks: got torch.int64, expected floating-point"),
        ({"sinks": torch.tensor([1.0, float("nan"), 0.0, 0.0])[:, None]}, ValueError, "sinks: got shape (4, 1)"),
        ({"key": random(0, 2, 2, 7, 6)}, ValueError, "key: got width 6, expected 8"),
        ({"key": random(0, 3, 2, 7, 8), "value": random(0, 3, 2, 7, 3)}, ValueError, "key: got a batch of 3"),
        ({"value": random(0, 2, 1, 7, 3)}, ValueError, "value: got 1 heads and 7 positions, expected 2 and 7"),
        ({"value": random(0, 2, 2, 6, 3)}, ValueError, "value: got 2 heads and 6 positions, expected 2 and 7"),
        ({"query": random(0, 2, 3, 5, 8)}, ValueError, "key: got 2 heads, expected a divisor of the query's 3"),
        ({"query": random(0, 2, 4, 5, 0), "key": random(0, 2, 2, 7, 0)}, ValueError, "query: got width 0"),
        ({"query": random(0, 5, 8)}, ValueError, "key: got shape (2, 2, 7, 8), expected 2, 3 or 4 axes"),
        ({"query": random(0, 8)}, ValueError, "query: got shape (8,), expected 2, 3 or 4 axes"),
        ({"key": random(0, 2, 2, 7, 8).float()}, TypeError, "key: got torch.float32, expected torch.float64"),
        ({"key": torch.ones(2, 2, 7, 8).long()}, TypeError, "key: got torch.int64, expected float64"),
    ],
)  # fmt: skip
def test_refused(changes: dict[str, Any], error: type[Exception], needed: str) -> None:
    with pytest.raises(error, match=re.escape(needed)):
        call(**changes)


@pytest.mark.parametrize(
    ("make", "given", "needed"),
    [
        (masks.padding, [True], "padding: got list, expected a boolean (B, S) tensor"),
        (masks.padding, torch.ones(5), "padding: got torch.float32 of shape (5,), expected"),
        (masks.padding, torch.ones(5).bool(), "padding: got torch.bool of shape (5,), expected"),
        (masks.dense, [True], "mask: got list, expected a boolean tensor of at most 4 axes"),
        (masks.dense, torch.ones(1, 1, 1, 1, 1).bool(), "mask: got torch.bool of shape (1, 1, 1, 1, 1), expected"),
        (masks.function, True, "mask function: got bool, expected a function of query and key positions"),
    ],
)
def test_no_mask(make: Any, given: Any, needed: str) -> None:
    with pytest.raises(TypeError, match=re.escape(needed)):
        make(given)


@pytest.mark.parametrize("name", ["query", "key", "value"])
def test_no_tensor(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name}: got list, expected a torch tensor"):
        call(**{name: [[1.0]]})


@pytest.mark.parametrize("name", ["key", "value", "mask", "bias", "sinks"])
def test_another_device(name: str) -> None:
    shapes = RIGHT | {"mask": (5, 7), "bias": (5, 7), "sinks": (4,)}
    elsewhere = torch.empty(shapes[name], device="meta", dtype=torch.bool if name == "mask" else torch.float64)
    with pytest.raises(ValueError, match=f"{name}: got a tensor on meta, expected cpu"):
        call(**{name: elsewhere})


def test_a_factor_that_the_dtype_cannot_hold() -> None:
    query = torch.linspace(-1, 1, 12).view(3, 4)
    for name in ("softcap", "scale"):
        with pytest.raises(ValueError, match=f"{name}: got 1e\\+39, expected a finite number that torch.float32 can"):
            regard.attend(query, query, query, **{name: 1e39})
    for name in ("softcap", "scale", "dropout"):
        with pytest.raises(ValueError, match=f"{name}: got a very large integer, expected a finite number"):
            regard.attend(query, query, query, **{name: 10**5000})
    with pytest.raises(ValueError, match="softcap: got 1e-46, expected a number above 0"):
        regard.attend(query, query, query, softcap=1e-46)
    assert regard.attend(query.double(), query.double(), query.double(), softcap=1e300).output.isfinite().all()
    plain = regard.attend(query, query, query)
    capped = regard.attend(query, query, query, softcap=10**30)
    torch.testing.assert_close(capped.output, plain.output)
    torch.testing.assert_close(capped.weights[...], plain.weights[...])
