"""The checks of annotations, of `make test-annotations`: what they find, and that they are there at all."""

from collections.abc import Callable

import jaxtyping
import pytest
import torch
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float
from torch import Tensor

from regard.attention.reference import attention
from regard.memory import format_bytes

ROWS = Float[Tensor, "rows width"]


def hooked(function: Callable[..., object]) -> Callable[..., object]:
    """As the import hook decorates what it finds in a module of the package."""
    return jaxtyping.jaxtyped(typechecker=beartype)(function)


def test_shapes_are_checked_across_arguments() -> None:
    def joined(a: ROWS, b: ROWS) -> ROWS:
        return a + b[:, :1]

    checked = hooked(joined)
    checked(torch.zeros(3, 5), torch.zeros(3, 5))
    with pytest.raises(jaxtyping.TypeCheckError, match=r"parameters of .*joined"):
        checked(torch.zeros(3, 5), torch.zeros(3, 7))


def test_the_package_is_checked(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("make test-annotations runs it")
    with pytest.raises(jaxtyping.TypeCheckError):
        attention(*(torch.zeros(1, 3, length, 5) for length in (7, 7, 11)))
    with pytest.raises(BeartypeCallHintViolation):
        format_bytes("7")
