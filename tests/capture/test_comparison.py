"""Which texts of a batch are held against the family's own attention, and that a wrong one among them is noticed."""

import pytest
import torch

from regard.capture import hf_attention


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 64, 257])
def test_four_calls_meet_every_text(count: int) -> None:
    met = [hf_attention._texts(call, count) for call in range(1, 5)]
    assert {n for texts in met for n in range(count)[texts]} == set(range(count))
    for texts in met:
        assert 0 <= texts.start < texts.stop <= count
        assert texts.stop - texts.start == min(count, max(2, -(-count // 4)))


@pytest.mark.parametrize("wrong", [0, 4, 6])
def test_one_wrong_text_among_seven_is_noticed(minilm, monkeypatch, wrong: int) -> None:
    texts = [f"{'a river bank ' * n}and a man" for n in range(1, 8)]
    before = [trace.status.difference for trace in minilm.trace(texts)]
    assert max(before) < 5e-6
    original = hf_attention.attend

    def disturbed(query, key, value, **rule):
        changed = key.clone()
        changed[wrong] *= 1.1
        return original(query, changed, value, **rule)

    monkeypatch.setattr(hf_attention, "attend", disturbed)
    found = minilm.trace(texts)
    assert min(trace.status.difference for trace in found) > 1e-3
    assert torch.isfinite(found[0].contextual).all()


def test_the_status_counts_the_rows(minilm) -> None:
    status = minilm.trace(["a river bank"] * 8)[0].status
    assert status.rows_compared == 6 * 2 * 4  # layers, texts a call, rows a text
