"""Rows joined one by one: where they stand, and that a wrong join is noticed."""

from typing import Any

import pytest
import torch

import regard
from regard.generation import join_steps
from regard.generation.join_steps import Place, Rows
from tests.support.generation import IDS, NEW, opened


def test_rows_double_and_end_up_exact() -> None:
    rows, pieces = Rows(), [torch.randn(1, 3, n, 5) for n in (7, 1, 1, 1, 11, 1)]
    expected = torch.cat(pieces, 2)
    for piece in pieces:
        rows.add(piece)
        piece.zero_()  # as a cache overwrites its buffer
    joined = rows.whole()
    assert torch.equal(joined, expected)
    assert joined.untyped_storage().nbytes() == joined.numel() * 4


@pytest.mark.parametrize(
    ("size", "past", "count", "expected"),
    [
        (13, 0, 13, Place(0, 13, 0, 0, 13)),  # prefill
        (14, 13, 1, Place(13, 1, 13, 0, 14)),  # a dynamic cache
        (5, 13, 1, Place(13, 1, 4, 9, 5)),  # a sliding one: keys 9 to 13
        (31, 13, 1, Place(13, 1, 13, 0, 14)),  # a static buffer that is not full
    ],
)
def test_where_keys_stand(size: int, past: int, count: int, expected: Place) -> None:
    assert Place.of(size, past, count) == expected


def test_a_wrong_join_is_refused(monkeypatch) -> None:
    """As if a static cache's buffer were read at its end: the sampled rows say so."""
    model, right = opened("llama"), Place.of
    monkeypatch.setattr(Place, "of", lambda size, past, count: right(size, past, count)._shifted(size, count))
    monkeypatch.setattr(
        Place, "_shifted", lambda self, size, count: Place(self.past, count, size - count, self.first, self.seen),
        raising=False,
    )  # fmt: skip
    with pytest.raises(regard.RegardError, match="joined to one map, the weights are off by"):
        model.generate(ids=IDS, new_tokens=NEW, cache="static")


def test_a_mask_that_changes_from_token_to_token_is_refused(monkeypatch) -> None:
    def wider(given: Any, **changes: Any) -> Any:
        return replace(given, **changes, **({"low": None} if isinstance(given, regard.masks.Mask) else {}))

    replace = join_steps.replace
    monkeypatch.setattr(join_steps, "replace", wider)
    with pytest.raises(regard.RegardError, match="what token . may attend to is not what its place"):
        opened("mistral").generate(ids=IDS, new_tokens=NEW)
