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
from regard.memory import spelled
from tests.support.annotations import has_shapes

ROWS = Float[Tensor, "rows width"]


def hooked(function: Callable[..., object]) -> Callable[..., object]:
    """As the import hook decorates what it finds in a module of the package."""
    return jaxtyping.jaxtyped(typechecker=beartype)(function)


def test_types_that_hold_shapes() -> None:
    assert all(map(has_shapes, (ROWS, list[ROWS], ROWS | None, Callable[[ROWS], int], dict[str, tuple[ROWS, int]])))
    assert not any(map(has_shapes, (int, list[int], Tensor, Callable[[int], str], str | None, None)))


def test_shapes_are_checked_across_arguments() -> None:
    def joined(a: ROWS, b: ROWS) -> ROWS:
        return a + b[:, :1]

    checked = hooked(joined)
    checked(torch.zeros(3, 5), torch.zeros(3, 5))
    with pytest.raises(jaxtyping.TypeCheckError, match=r"parameters of .*joined"):
        checked(torch.zeros(3, 5), torch.zeros(3, 7))


def test_types_are_checked_where_there_are_no_shapes() -> None:
    def doubled(n: int) -> int:
        return n * 2 if n < 10 else str(n)

    checked = hooked(doubled)
    assert checked(3) == 6
    with pytest.raises(BeartypeCallHintViolation, match="parameter n"):
        checked("3")
    with pytest.raises(BeartypeCallHintViolation, match="return"):
        checked(11)
    jaxtyping.config.update("jaxtyping_disable", True)
    try:
        assert checked(11) == "11"
    finally:
        jaxtyping.config.update("jaxtyping_disable", False)


def test_a_function_within_a_function_is_checked_the_first_time_it_is_made() -> None:
    def outer() -> Callable[..., object]:
        def inner(n: int) -> int:
            return n

        return hooked(inner)

    with pytest.raises(BeartypeCallHintViolation):
        outer()("a")
    assert outer()("a") == "a"


def test_the_package_is_checked(pytestconfig: pytest.Config) -> None:
    if not pytestconfig.getoption("jaxtyping_packages"):
        pytest.skip("make test-annotations runs it")
    with pytest.raises(jaxtyping.TypeCheckError):
        attention(*(torch.zeros(1, 3, length, 5) for length in (7, 7, 11)))
    with pytest.raises(BeartypeCallHintViolation):
        spelled("7")
