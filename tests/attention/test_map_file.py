"""Maps as files: what is loaded gives the same weights, and what is no map is refused."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings

import regard
from regard.attention import map_file
from tests.attention.cases import Case, as_from_a_file, cases, random, worst


@settings(max_examples=60)
@given(cases())
def test_what_was_packed_is_the_same_map(case: Case) -> None:
    seen = regard.attend(case.query, case.key, case.value, **case.options).weights
    again = as_from_a_file(seen)
    assert (again.shape, again.dtype, again.offset) == (seen.shape, seen.dtype, seen.offset)
    rounding = 1e-6 + 8 * torch.finfo(seen.dtype).eps * case.largest  # another layout may be summed in another order
    assert worst(again.scores[...], seen.scores[...]) <= rounding
    assert worst(again.dense(), seen.dense()) <= rounding


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_file_holds_a_map(tmp_path: Path, dtype: torch.dtype) -> None:
    query = random(0, 2, 5, 3, dtype=dtype)
    mask = regard.masks.padding(torch.tensor([[True, True, False, True, True]])) & regard.masks.function(
        lambda i, j: (i + j) % 3 != 0
    )
    seen = regard.attend(query, query, query, mask=mask, causal=True, softcap=3.0, sinks=torch.zeros(2)).weights
    file = tmp_path / "map.safetensors"
    seen.save(file)
    again = regard.AttentionMap.load(file)
    torch.testing.assert_close(again.dense(), seen.dense(), atol=1e-6, rtol=0)
    torch.testing.assert_close(again.distance(), seen.distance(), atol=1e-5, rtol=0)
    assert again.query.dtype == dtype
    assert again.shape == seen.shape == (2, 5, 5)
    assert list(tmp_path.iterdir()) == [file]


def test_nothing_of_size_n_by_n_is_written(tmp_path: Path) -> None:
    query = random(0, 1, 1, 1024, 2, dtype=torch.float32)
    bias = torch.zeros(1).expand(1, 1, 1024, 1024)
    regard.attend(query, query, query, causal=True, bias=bias).weights.save(tmp_path / "map")
    assert (tmp_path / "map").stat().st_size < 60_000


def test_a_function_over_too_much_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_file, "FUNCTION_LIMIT", 24)
    query = random(0, 5, 2)
    mask = regard.masks.function(lambda i, j: (i + j) % 2 == 0)
    seen = regard.attend(query, query, query, mask=mask).weights
    with pytest.raises(ValueError, match=r"mask: given a function of positions over 5 × 5 scores"):
        seen.save(tmp_path / "map")
    assert not list(tmp_path.iterdir())
