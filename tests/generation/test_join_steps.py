"""Rows joined one by one, and that a wrong join is noticed."""

from typing import Any

import pytest
import torch

import regard
from regard.generation import join_steps
from regard.generation.join_steps import Rows
from regard.generation.step_ablation import PassRange
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


def test_a_wrong_join_is_refused(monkeypatch) -> None:
    """As if a static cache's buffer were read at its end: the sampled rows say so."""
    model, right = opened("llama"), PassRange.of
    monkeypatch.setattr(PassRange, "of", lambda size, past, count: right(size, past, count)._shifted(size, count))
    monkeypatch.setattr(
        PassRange, "_shifted", raising=False,
        value=lambda self, size, count: PassRange(self.past, count, size - count, self.first, self.seen),
    )  # fmt: skip
    with pytest.raises(regard.RegardError, match="joined to one map, the weights are off by"):
        model.generate(ids=IDS, max_new_tokens=NEW, cache="static")


def test_a_mask_that_changes_from_token_to_token_is_refused(monkeypatch) -> None:
    def wider(given: Any, **changes: Any) -> Any:
        return replace(given, **changes, **({"low": None} if isinstance(given, regard.masks.Mask) else {}))

    replace = join_steps.replace
    monkeypatch.setattr(join_steps, "replace", wider)
    with pytest.raises(regard.RegardError, match="what token . may attend to is not what its place"):
        opened("mistral").generate(ids=IDS, max_new_tokens=NEW)
