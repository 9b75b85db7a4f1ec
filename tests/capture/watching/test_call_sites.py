"""Calls are named by the path of their module, however it is called, and by their line."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import regard
from regard.capture.watching import call_sites as internals
from regard.capture.watching.call_sites import without_wrappers
from tests.support.handwritten import NanoGPT


def test_backward_passes_are_told_from_others() -> None:
    found = []
    x = torch.ones(2, requires_grad=True)
    x.register_hook(lambda grad: found.append(internals.in_backward_pass()))
    x.sum().backward()
    assert [*found, internals.in_backward_pass()] == [True, False]


def test_tensors_outlive_transforms() -> None:
    kept: list[Tensor] = []

    def keep(a: Tensor, b: Tensor) -> Tensor:
        with internals.outside_transforms():
            kept.extend(tensor.clone() for tensor in internals.without_transforms([a, b]))
        return a.sum() + b.sum()

    a, b = torch.randn(3, 4, 5), torch.randn(5, 2)
    torch.vmap(torch.func.grad(keep), in_dims=(0, None))(a, b)
    torch.vmap(keep, in_dims=(2, 0))(a, b)
    assert torch.equal(kept[0], a)
    assert torch.equal(kept[1], b[None])
    assert torch.equal(kept[2], a.movedim(2, 0))
    assert torch.equal(kept[3], b)
    with internals.outside_transforms():
        assert torch.equal(internals.without_transforms([a])[0], a)


def test_multi_head_attention_is_copied_whole() -> None:
    copy: Callable[..., Any] = internals.multi_head_attention_in_steps(len)
    assert (
        inspect.signature(copy).parameters.keys() == inspect.signature(F.multi_head_attention_forward).parameters.keys()
    )
    names = list(inspect.signature(copy).parameters)
    assert (names[4], names[13], names[15]) == ("num_heads", "training", "need_weights")  # as watching reads them
    assert copy.__code__ is F.multi_head_attention_forward.__code__
    assert copy.__globals__["has_torch_function"](()) is False
    assert copy.__globals__["scaled_dot_product_attention"] is len
    assert "scaled_dot_product_attention" in copy.__code__.co_names  # it is called by this name


X = torch.randn(2, 10, 32)


def paths(module: nn.Module | None, run: nn.Module) -> list[tuple[str, int]]:
    with regard.watch(module) as seen:
        run(X)
    return list(seen)


class Twice(nn.Module):
    """Two names for one module, a module in a plain list, and recursion."""

    def __init__(self) -> None:
        super().__init__()
        self.a = NanoGPT()
        self.block = nn.ModuleDict({"b": self.a})
        self.hidden = [NanoGPT()]

    def forward(self, x: Tensor, again: int = 1) -> Tensor:
        x = self.hidden[0](self.block["b"].forward(self.a(x)))
        return self.forward(x, again - 1) if again else x


class Generates(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a = NanoGPT()

    def parts(self, x: Tensor) -> Iterator[Tensor]:
        yield self.a(x)
        yield self.a(x)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack(list(self.parts(x)))


def test_paths() -> None:
    found = paths(twice := Twice(), twice)
    assert found == [("a", 0), ("a", 1), ("NanoGPT", 0), ("a", 2), ("a", 3), ("NanoGPT", 1)]
    assert paths(module := Generates(), module) == [("a", 0), ("a", 1)]
    model = nn.Sequential(nn.Sequential(NanoGPT()), nn.DataParallel(NanoGPT()))
    assert paths(model, model) == [("0.0", 0), ("1.module", 0)]
    assert paths(model[0], model) == [("0", 0)]  # the function `paths` takes model[0], and is no method of it
    assert paths(None, model) == [("run.0.0", 0), ("run.1.module", 0)]


def test_functions_are_named_without_modules() -> None:
    def my_attention() -> Tensor:
        return F.scaled_dot_product_attention(*torch.randn(3, 1, 2, 5, 4))

    with regard.watch() as seen:
        my_attention()
        exec("weights = (x @ x.mT).softmax(-1)\ny = weights @ x", {"x": X})
    assert list(seen) == [("my_attention", 0), ("line 1", 0)]
    assert seen["my_attention"].where.endswith(f"test_call_sites.py:{my_attention.__code__.co_firstlineno + 1}")


def test_a_line_of_a_script_is_named_by_its_variable(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text("weights = (x @ x.mT).softmax(-1)\ny = weights @ x\n")
    with regard.watch() as seen:
        exec(compile(script.read_text(), script, "exec"), {"x": X})
    assert list(seen) == [("weights", 0)]
    assert seen["weights"].where == f"{script}:1"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own compiler
def test_wrappers_are_taken_off() -> None:
    module = NanoGPT()
    assert without_wrappers(nn.DataParallel(torch.compile(nn.DataParallel(module)))) is module  # type: ignore[arg-type]
    compiled = nn.Sequential(torch.compile(NanoGPT(), backend="eager"))  # type: ignore[arg-type]
    assert paths(compiled, compiled) == [("0", 0)]
