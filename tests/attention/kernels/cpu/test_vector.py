"""The exponential that the CPU's passes are made of."""

import numpy as np
import pytest
from numba import njit

from regard.attention.kernels.cpu import vector


@pytest.fixture(scope="module")
def exp2():
    exp2 = vector.exp2

    @njit
    def each(numbers, into):
        for n in range(len(numbers)):
            into[n] = exp2(numbers[n])

    def call(numbers: np.ndarray) -> np.ndarray:
        into = np.empty_like(numbers)
        each(numbers, into)
        return into

    return call


def test_exp2_rounds_like_a_library(exp2) -> None:
    numbers = np.linspace(-126, 0, 1_000_003, dtype=np.float32)
    error = np.abs(exp2(numbers).astype(np.float64) / np.exp2(numbers.astype(np.float64)) - 1)
    assert error.max() < 1.2e-7


def test_exp2_at_its_ends(exp2) -> None:
    numbers = np.array([0.0, -0.0, -1.0, -126.0, -127.0, -1e30, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(exp2(numbers), np.array([1, 1, 0.5, 2.0**-126, 0, 0, 0, np.nan], np.float32))


def test_sums_of_each_sixteen() -> None:
    add_up = vector.add_up

    @njit
    def sums(numbers, start, into, at):
        add_up(numbers, start, into, at)

    numbers = np.random.default_rng(0).integers(-1000, 1000, 256 + 7).astype(np.float32)  # whole: every order is exact
    into = np.full(16 + 5, np.float32(0.5))
    sums(numbers, 7, into, 3)
    np.testing.assert_array_equal(into[3:19], numbers[7:].reshape(16, 16).sum(1))
    assert (into[:3] == 0.5).all()
    assert (into[19:] == 0.5).all()


def test_the_exponential_is_compiled_for_the_widest_vectors() -> None:
    exp2 = vector.exp2

    @njit("f4(f4)")
    def one(number):
        return exp2(number)

    (text,) = one.inspect_llvm().values()
    assert '"prefer-vector-width"="512"' in text
