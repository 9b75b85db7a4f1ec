"""Pieces of tensors: what is stored is the tensor, in its own order of memory, in chunks of any size, once."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.tensor_files import pieces
from regard.tensor_files.pieces import Piece, Pieces

SHAPE = (3, 5, 7)


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0))


def stored(described: Any, collected: Pieces) -> torch.Tensor:
    """The tensor, as it is described, from what would be written."""
    written = {
        name: torch.cat([c.reshape(-1) for c in parts]).view(shape) for name, _, shape, _, parts in collected.ordered()
    }
    if isinstance(described, str):
        return written[described]
    name, order = described
    return written[name].permute([order.index(n) for n in range(len(order))])


@given(st.permutations(range(3)), st.integers(0, 2), st.sets(st.integers(0, 2)), st.integers(1, 500))
def test_any_order_of_axes_places_and_chunks(axes: list[int], axis: int, places: set[int], chunk: int) -> None:
    tensor = random(*SHAPE).permute(axes)
    chosen = tuple(sorted(places)) or None
    collected = Pieces()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "CHUNK", chunk)
        described = collected.add("x", collected.piece(tensor, axis, chosen))
        wanted = tensor if chosen is None else tensor.index_select(axis, torch.tensor(chosen))
        assert torch.equal(stored(described, collected), wanted)
    assert collected.shapes()[described if isinstance(described, str) else described[0]].numel() == wanted.numel()


def test_the_same_memory_is_stored_once() -> None:
    tensor, collected = random(*SHAPE), Pieces()
    assert collected.add("a", collected.piece(tensor)) == collected.add("b", collected.piece(tensor.view(SHAPE))) == "a"
    assert collected.add("c", collected.piece(tensor[1:])) == "c"  # another part of it
    assert collected.add("d", collected.piece(tensor, 1, (0, 2))) == "d"
    assert sorted(collected.shapes()) == ["a", "c", "d"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_rounded_to_a_dtype_and_never_widened(dtype: torch.dtype) -> None:
    for own in (torch.float64, torch.float32, torch.float16, torch.bool):
        tensor = random(4, 3).to(own)
        piece = Pieces(dtype).piece(tensor)
        wanted = dtype if own.is_floating_point and dtype.itemsize <= own.itemsize else own
        assert (piece.dtype, piece.narrowed) == (wanted, wanted != own)
        assert torch.equal(piece.take(), tensor.to(wanted))


def test_a_number_too_large_for_the_dtype() -> None:
    with pytest.raises(RegardError, match=r"dtype float16 cannot hold 1e\+05: choose another, or none"):
        Piece(torch.tensor([1.0, 1e5]), torch.float16).take()
    infinite = Piece(torch.tensor([1.0, -torch.inf]), torch.float16, minus_inf=True).take()
    assert infinite.tolist() == [1.0, -torch.inf]  # it was infinite before


def test_whole_numbers_are_no_tensors_of_a_file() -> None:
    collected = Pieces()
    with pytest.raises(RegardError, match="tensor 'ids' is of int64, needs floating-point or boolean numbers"):
        collected.add("ids", collected.piece(torch.arange(3)))
