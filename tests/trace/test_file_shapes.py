import pytest
import torch

import regard
from regard.trace.file_shapes import Shapes, stored


def test_axes_are_given_in_the_tensors_own_order() -> None:
    tensor = torch.arange(30.0).view(2, 3, 5)
    lying = tensor.permute(2, 0, 1)  # axis n of what is stored is axis (2, 0, 1)[n] of the tensor
    name, found = stored({"a": lying}, ["a", [2, 0, 1]])
    assert name == "a"
    assert torch.equal(found, tensor)
    assert stored({"a": lying}, "a")[1] is lying
    for described, says in (
        ("b", "tensor 'b' is missing"),
        (["a", [0, 1]], "tensor 'a' has 3 axes, the order of 2 is described"),
        (["a", [0, 1, 1]], "tensor 'a' has 3 axes, the order of 3 is described"),
        (["a"], "a tensor's name is of 1 parts, needs it and the order of its axes"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            stored({"a": lying}, described)


def test_the_first_tensor_with_a_letter_sets_it() -> None:
    used: set[str] = set()
    shapes = Shapes({"a": torch.zeros(3, 5), "b": torch.zeros(5, 1), "c": torch.zeros(4, 5)}, used)
    shapes.check("a", "H L")
    assert (shapes.sizes, used) == ({"H": 3, "L": 5}, {"a"})
    assert shapes.check("b", "L #H").shape == (5, 1)
    with pytest.raises(regard.RegardError, match=r"tensor 'c' has shape \(4, 5\), needs \(H, L\) with H = 3, L = 5"):
        shapes.check("c", "H L")
    assert shapes.within(H=4).check("c", "H L").shape == (4, 5)
    assert shapes.sizes["H"] == 3
    assert used == {"a", "b", "c"}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.bool])
def test_numbers_are_of_the_kind_that_is_needed(dtype: torch.dtype) -> None:
    shapes = Shapes({"a": torch.zeros(3, 5).to(dtype)}, set())
    for boolean, needed in ((False, "floating-point"), (True, "boolean")):
        if dtype.is_floating_point if needed == "floating-point" else dtype == torch.bool:
            assert shapes.check("a", "H L", boolean=boolean).shape == (3, 5)
        else:
            with pytest.raises(regard.RegardError, match=f"tensor 'a' is of {dtype}, needs {needed} numbers"):
                shapes.check("a", "H L", boolean=boolean)
