"""A weight kept in half precision gives what it gives in float32, and no product raises the whole of it."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

import regard
from regard.gguf.quantised_rows import QuantisedRows
from regard.model_files import stored_weight
from regard.model_files.stored_weight import StoredWeight

OUT, IN, ROWS = 17, 96, 5
IDS = torch.tensor([[3, 16, 0], [3, 3, 7]])
# what a model does with a weight w, and with rows x that it multiplies
OPERATIONS = {
    "linear": lambda w, x: F.linear(x, w),
    "linear with a bias": lambda w, x: F.linear(x, w, torch.arange(float(OUT))),
    "linear of one vector": lambda w, x: F.linear(x[0], w),
    "linear by name": lambda w, x: F.linear(input=x, weight=w),
    "linear in a batch": lambda w, x: F.linear(x.expand(2, 3, ROWS, IN), w),
    "matmul": lambda w, x: x @ w.t(),
    "mm": lambda w, x: torch.mm(x, w.T),
    "addmm": lambda w, x: torch.addmm(torch.arange(float(OUT)), x, w.mT),
    "addmm with factors": lambda w, x: torch.addmm(torch.arange(float(OUT)), x, w.mT, alpha=2.0),
    "a weight on the left": lambda w, x: w @ x.t(),
    "two weights": lambda w, x: w @ w.t(),
    "float64": lambda w, x: F.linear(x.double(), w.double()),
    "embedding": lambda w, x: F.embedding(IDS, w),
    "embedding with padding": lambda w, x: F.embedding(IDS, w, padding_idx=3),
    "scaled by its own dtype": lambda w, x: F.embedding(IDS, w) * torch.tensor(25.3).to(w.dtype),
    "a row": lambda w, x: w[3],
    "a part": lambda w, x: w[2:7, 1:],
    "split": lambda w, x: torch.cat([F.linear(x, part) for part in w.split(7)], -1),
    "joined": lambda w, x: F.linear(x, torch.cat([w, w[:3]])),
    "stacked": lambda w, x: torch.bmm(x.expand(2, ROWS, IN), torch.stack([w, w]).transpose(1, 2)),
    "an expert": lambda w, x: F.linear(x, torch.stack([w, 2 * w])[1]),
    "elementwise": lambda w, x: w * 2 + 1,
    "its bytes": lambda w, x: w.view(torch.uint8),
    "a sum": lambda w, x: w.sum(),
    "einsum": lambda w, x: torch.einsum("ri,oi->ro", x, w),
    "a norm": lambda w, x: torch.linalg.vector_norm(w, dim=1),
    "numpy": lambda w, x: torch.from_numpy(w.detach().numpy()),
}


def drawn() -> Tensor:
    return torch.randn(OUT, IN, generator=torch.Generator().manual_seed(3))


@pytest.fixture(params=[*stored_weight.HALVES, "Q4_1"], ids=str)
def values(request) -> Tensor | QuantisedRows:
    if request.param != "Q4_1":
        return drawn().to(request.param)
    gguf: Any = pytest.importorskip("gguf", reason="the package gguf is not installed (extra gguf)")
    kind = gguf.GGMLQuantizationType.Q4_1
    rows = torch.from_numpy(gguf.quants.quantize(drawn().numpy(), kind))
    return QuantisedRows(rows, "Q4_1", gguf.GGML_QUANT_SIZES[kind])


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch) -> None:
    monkeypatch.setattr(stored_weight, "BLOCK", 3 * IN)
    monkeypatch.setattr(stored_weight, "MANY_ROWS", 4)


def test_rows_that_lie_apart(values: Tensor | QuantisedRows) -> None:
    x = torch.randn(IN, 48, generator=torch.Generator().manual_seed(5)).t()[::2]
    torch.testing.assert_close(F.linear(x, StoredWeight.of(values)), F.linear(x, values.float()), atol=2e-5, rtol=0)


def rows() -> Tensor:
    return torch.randn(ROWS, IN, generator=torch.Generator().manual_seed(5))


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_gives_what_it_gives_on_the_raised_weight(name: str, values: Tensor | QuantisedRows) -> None:
    given, expected = (OPERATIONS[name](w, rows()) for w in (StoredWeight.of(values), values.float()))
    assert given.dtype == expected.dtype
    assert given.shape == expected.shape
    torch.testing.assert_close(torch.as_tensor(given.tolist()), torch.as_tensor(expected.tolist()), atol=2e-5, rtol=0)


def test_it_is_a_float32_weight_to_whoever_asks(values: Tensor | QuantisedRows) -> None:
    weight = nn.Parameter(StoredWeight.of(values), requires_grad=False)
    held = values.bytes if isinstance(values, QuantisedRows) else values
    assert (weight.dtype, weight.shape, weight.stride(), weight.is_meta) == (torch.float32, (OUT, IN), (IN, 1), False)
    assert (weight.data_ptr(), weight.untyped_storage().nbytes()) == (held.data_ptr(), held.nbytes)
    layer = nn.Linear(IN, OUT)
    layer.weight = weight
    assert layer.to("cpu").float().weight is weight
    copied = copy.deepcopy(layer).weight
    assert isinstance(copied, StoredWeight)
    assert isinstance(copied, nn.Parameter)
    assert copied.data_ptr() != weight.data_ptr()
    assert torch.equal(copied + 0, values.float())
    assert torch.cat([block.clone() for block in weight.blocks()]).equal(values.float())
    assert all(bool(torch.isfinite(each).all()) for each in weight.values_to_check())


def test_neither_a_product_nor_a_move_holds_the_whole_weight_in_float32(values: Tensor | QuantisedRows) -> None:
    class Largest(TorchDispatchMode):
        numbers = 0

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            made = func(*args, **(kwargs or {}))
            if isinstance(made, Tensor) and made.dtype == torch.float32 and not made.is_meta:
                self.numbers = max(self.numbers, made.numel())
            return made

    x = rows().requires_grad_()
    with Largest() as seen:
        F.linear(x, StoredWeight.of(values)).sum().backward()
        F.embedding(IDS, StoredWeight.of(values))
        layer = nn.Linear(1, 1)
        layer.weight = nn.Parameter(StoredWeight.of(values), requires_grad=False)
        layer.to("cpu")
    assert seen.numbers < OUT * IN


@pytest.mark.parametrize(
    "write",
    [
        lambda w: w.mul_(2),
        lambda w: w.data.zero_(),
        lambda w: w.__setitem__(0, 1.0),
        lambda w: w.__imul__(2),
        lambda w: setattr(w, "data", torch.zeros(OUT, IN)),
        lambda w: nn.init.normal_(w),
        lambda w: torch.mm(torch.ones(OUT, 2), torch.ones(2, IN), out=w),
    ],
)
def test_it_is_not_written_into(write: Any, values: Tensor | QuantisedRows) -> None:
    before = values.float()
    with pytest.raises(regard.RegardError, match="kept as its file has it cannot be written into"):
        write(StoredWeight.of(values))
    assert torch.equal(values.float(), before)
