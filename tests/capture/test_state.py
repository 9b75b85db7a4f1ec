"""The state of a captured pass: each has lists of its own, and what a pass observes comes into it."""

import pytest
import torch

from regard.capture import hf_attention
from regard.capture.state import ModuleIndex, compared_batch_texts
from tests.support.generation import opened


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 64, 257])
def test_four_calls_meet_every_text(count: int) -> None:
    met = [compared_batch_texts(call, count) for call in range(1, 5)]
    assert {n for texts in met for n in range(count)[texts]} == set(range(count))
    for texts in met:
        assert 0 <= texts.start < texts.stop <= count
        assert texts.stop - texts.start == min(count, max(2, -(-count // 4)))


@pytest.mark.parametrize("wrong", [0, 4, 6])
def test_one_wrong_text_among_seven_is_noticed(minilm, monkeypatch, wrong: int) -> None:
    assert minilm.model  # opened with transformers: its attention is disturbed
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
    assert torch.isfinite(found[0].last_hidden_state).all()


def test_the_index_has_all_modules_and_looks_once() -> None:
    model = opened("gpt2").model
    index, looked = ModuleIndex(model), []
    assert index.modules == list(model.modules())
    assert index.paths == {id(module): path for path, module in model.named_modules()}
    assert [index.once(looked.append) for _ in range(2)] == [None, None]
    assert looked == [model]
