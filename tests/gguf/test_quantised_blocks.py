"""Quantised blocks are raised to the very numbers that the package gguf raises them to."""

import numpy as np
import pytest

from regard.gguf import quantised_blocks
from tests.gguf.gguf_files import SCALES, gguf, quantised

KINDS = (*quantised_blocks.KERNELS, *(kind for kind in SCALES if kind not in quantised_blocks.KERNELS))
ROWS, BLOCKS = 7, 11


def drawn(kind: str) -> np.ndarray:
    width = BLOCKS * gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[kind]][0]
    return quantised(np.random.default_rng(3).standard_normal((ROWS, width)).astype(np.float32), kind)


def expected(kind: str, packed: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        return gguf.dequantize(packed, gguf.GGMLQuantizationType[kind])


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_every_kind_are_those_of_the_package_to_the_bit(kind: str) -> None:
    packed = drawn(kind)
    given = np.full(expected(kind, packed).size, np.nan, np.float32)
    quantised_blocks.dequantize_blocks(kind, packed.reshape(-1), given)
    assert np.array_equal(given.view(np.uint32), expected(kind, packed).reshape(-1).view(np.uint32))


@pytest.mark.parametrize("kind", quantised_blocks.KERNELS)
@pytest.mark.parametrize("scale", [np.nan, -np.inf, 6e-8], ids=str)
def test_numbers_are_finite_where_their_scales_are(kind: str, scale: float) -> None:
    """6e-8 is below the least normal number of float16."""
    size, first, last = quantised_blocks.SCALES[kind]
    packed = drawn(kind).reshape(-1, size)
    scales = quantised_blocks.scales(kind, packed.reshape(-1))
    assert scales is not None
    assert scales.shape == (ROWS * BLOCKS, (last - first) // 2)
    assert np.isfinite(scales).all()
    packed[5, last - 2 : last] = np.float16(scale).reshape(1).view(np.uint8)
    given = np.empty(expected(kind, packed).size, np.float32)
    quantised_blocks.dequantize_blocks(kind, packed.reshape(-1), given)
    assert np.array_equal(given, expected(kind, packed).reshape(-1), equal_nan=True)
    changed = quantised_blocks.scales(kind, packed.reshape(-1))
    assert np.isfinite(changed).all() == np.isfinite(given).all() == np.isfinite(scale)


def test_other_kinds_have_scales_of_their_own() -> None:
    assert quantised_blocks.scales("Q3_K", drawn("Q3_K").reshape(-1)) is None
