import zlib
from base64 import b64encode

import numpy as np
import pytest
import torch

from regard.web.numbers import LARGEST, NumberStore, page_number_byte_planes, vectors_rounded_for_page
from tests.support.web_pages import from_byte_planes


def test_byte_planes_have_the_lowest_bytes_of_all_numbers_first() -> None:
    assert page_number_byte_planes(np.array([0x0102, 0x0304], np.int16)) == bytes([0x02, 0x04, 0x01, 0x03])
    assert page_number_byte_planes(np.array([0x01020304], np.int32)) == bytes([4, 3, 2, 1])


@pytest.mark.parametrize("dtype", ["int16", "uint16", "int32", "float32"])
@pytest.mark.parametrize("shape", [[2, 3], [0, 3], [1]])
def test_byte_planes_are_read_back(dtype: str, shape: list[int]) -> None:
    numbers = np.random.default_rng(0).integers(0, 30000, shape).astype(dtype)
    again = from_byte_planes(page_number_byte_planes(numbers), dtype, shape)
    assert again.dtype == numbers.dtype
    np.testing.assert_array_equal(again, numbers)


def test_rounding_is_off_by_half_a_step_at_most() -> None:
    torch.manual_seed(0)
    vectors = torch.randn(50, 7) * torch.logspace(-30, 30, 50)[:, None]
    values, scales = vectors_rounded_for_page(vectors)
    assert values.dtype == torch.int16
    assert int(values.abs().max()) <= LARGEST
    apart = (values.double() * scales[:, None].double() - vectors.double()).abs()
    assert bool((apart <= 0.5001 * scales[:, None].double()).all())
    # a scale is the exact one, or up to 1 % larger
    exact = vectors.double().abs().amax(1) / LARGEST
    assert bool(((scales.double() >= exact) & (scales.double() <= 1.01 * exact)).all())


def test_a_store_says_where_its_numbers_are_and_what_the_page_will_have() -> None:
    torch.manual_seed(0)
    vectors = torch.randn(2, 5, 3)
    store = NumberStore()
    says, there = store.add_vectors(vectors)
    assert says["values"] == {"at": 0, "dtype": "int16", "shape": [2, 5, 3]}
    assert says["scales"] == {"at": 1, "dtype": "float32", "shape": [2, 5]}
    values = from_byte_planes(zlib.decompress(store.blobs[0]), "int16", [2, 5, 3])
    scales = from_byte_planes(zlib.decompress(store.blobs[1]), "float32", [2, 5])
    np.testing.assert_array_equal(values.astype(np.float32) * scales[..., None], there.numpy())
    assert 0 < float((there - vectors).abs().max()) < 1e-4
    assert store.size == sum(len(b64encode(blob)) for blob in store.blobs)


def test_rounded_vectors_are_as_near_as_the_page_says() -> None:
    vectors = torch.randn(257, 31, generator=torch.Generator().manual_seed(0)) * torch.logspace(-6, 6, 257)[:, None]
    _, page = NumberStore().add_vectors(vectors)
    assert float(((page - vectors).abs().amax(-1) / vectors.abs().amax(-1)).max()) <= 1.6e-5
