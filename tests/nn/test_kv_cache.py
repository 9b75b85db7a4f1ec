"""The KV cache: what it hands out, that earlier views stay what they were, and what does not belong into it."""

import pytest
import torch

from regard.nn.kv_cache import KeyValueCache


def rows(count: int, seed: int, width: int = 5) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    made = torch.Generator().manual_seed(seed)
    return (
        torch.randn(2, 3, count, width, generator=made),
        torch.randn(2, 3, count, 7, generator=made),
        torch.randint(0, 99, (2, count), generator=made),
    )


def test_all_tokens_so_far_in_their_order() -> None:
    cache, pieces = KeyValueCache(), [rows(n, seed) for seed, n in enumerate((11, 1, 1, 13, 1))]
    for number, piece in enumerate(pieces, 1):
        found = cache.append(*piece)
        so_far = zip(*pieces[:number], strict=True)
        expected = [torch.cat(each, axis) for each, axis in zip(so_far, (2, 2, 1), strict=True)]
        assert all(torch.equal(*each) for each in zip(found, expected, strict=True))
        assert len(cache) == expected[0].shape[2]


def test_earlier_views_stay_what_they_were_and_share_one_buffer() -> None:
    cache = KeyValueCache()
    first, *_ = cache.append(*rows(17, 1))
    kept = first.clone()
    second, *_ = cache.append(*rows(1, 2))
    third, *_ = cache.append(*rows(1, 3))
    assert torch.equal(first, kept)
    assert second.data_ptr() == third.data_ptr()  # written once, into room for twice as many


def test_gradients_reach_every_row() -> None:
    cache = KeyValueCache()
    pieces = [[each.requires_grad_() if each.is_floating_point() else each for each in rows(n, n)] for n in (3, 1)]
    for piece in pieces:
        key, value, _ = cache.append(*piece)
    (key.sum() + 2 * value.sum()).backward()
    for piece in pieces:
        assert torch.equal(piece[0].grad, torch.ones_like(piece[0]))
        assert torch.equal(piece[1].grad, torch.full_like(piece[1], 2))


def test_a_buffer_made_in_inference_mode_can_be_used_out_of_it() -> None:
    cache = KeyValueCache()
    with torch.inference_mode():
        cache.append(*rows(3, 1))
    key, *_ = cache.append(*rows(1, 2))
    assert key.shape == (2, 3, 4, 5)
    assert not key.is_inference()


def test_another_sequence_is_refused() -> None:
    cache = KeyValueCache()
    cache.append(*rows(3, 1))
    with pytest.raises(ValueError, match="cache: given key of shape"):
        cache.append(*rows(1, 2, width=6))
    assert len(cache) == 3
