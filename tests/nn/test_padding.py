"""Where the tokens of padded batches stand, and which texts a model cannot read."""

import pytest
import torch

from regard.errors import RegardError
from regard.nn.padding import check_transformer_ids, positions_in_padded_batch

IDS = torch.arange(10).reshape(2, 5)


def test_without_padding_positions_are_shared() -> None:
    for mask in (None, torch.ones(2, 5, dtype=torch.bool), torch.ones(2, 5, dtype=torch.long)):
        at = positions_in_padded_batch(IDS, mask)
        assert at.positions.tolist() == [0, 1, 2, 3, 4]
        assert (at.keys, at.stop) == (None, 5)
    later = positions_in_padded_batch(IDS, None, 7)
    assert (later.positions.tolist(), later.stop) == ([7, 8, 9, 10, 11], 12)


def test_padding_on_the_right_is_masked_unless_it_is_out_of_sight() -> None:
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]])
    at = positions_in_padded_batch(IDS, mask)
    assert at.positions.tolist() == [0, 1, 2, 3, 4]
    assert at.keys is not None
    assert torch.equal(at.keys, mask.bool())
    assert positions_in_padded_batch(IDS, mask, causal=True).keys is None


def test_with_padding_elsewhere_each_text_counts_its_own() -> None:
    mask = torch.tensor([[0, 0, 1, 1, 1], [1, 1, 1, 1, 0]])
    for causal in (False, True):
        at = positions_in_padded_batch(IDS, mask, causal=causal)
        assert at.positions.tolist() == [[0, 0, 0, 1, 2], [0, 1, 2, 3, 3]]
        assert at.stop == 4
        assert at.keys is not None
        assert torch.equal(at.keys, mask.bool())


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_refused() -> None:
    with pytest.raises(RegardError, match=r"mask: given shape \(2, 4\), needs \(2, 5\)"):
        positions_in_padded_batch(IDS, torch.ones(2, 4, dtype=torch.bool))
    with pytest.raises(RegardError, match=r"ids: given shape \(2, 0\), needs at least one token"):
        check_transformer_ids(IDS[:, :0], 0, 10, None)
    with pytest.raises(RegardError, match="ids: given 6 tokens, the model takes 5 at most"):
        check_transformer_ids(IDS, 6, 10, 5)
    with pytest.raises(RegardError, match="ids: given id 9, the model has ids 0 to 8"):
        check_transformer_ids(IDS, 5, 9, 5)
    with pytest.raises(RegardError, match="ids: given id -1"):
        check_transformer_ids(IDS - 1, 5, 10, 5)
    check_transformer_ids(IDS, 5, 10, 5)
