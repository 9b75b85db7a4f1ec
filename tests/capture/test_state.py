"""The state of a captured pass: each has lists of its own, and what a pass observes comes into it."""

import math

import pytest
import torch

from regard.capture import hf_attention
from regard.capture.options import CaptureOptions
from regard.capture.state import SAME_INPUTS, Capture, Comparison, ModuleFacts, compared_batch_texts, sampled_rows
from tests.support.generation import IDS, opened


def test_two_passes_share_nothing_that_they_observe() -> None:
    one, other = Capture({}), Capture({})
    one.cross_paths.add("decoder.0")
    one.comparison.add(0.5, 0.0, 3)
    assert other.cross_paths == set()
    assert other.comparison.weights is None
    assert other.comparison.reference == SAME_INPUTS
    assert (other.keep, other.calls, other.contradiction) == (CaptureOptions(), 0, False)


def test_what_is_observed_of_a_pass() -> None:
    model = opened("llama")
    session = model._session
    capture = Capture(session.module_paths, call_masks=[])
    assert set(capture.module_paths) == {id(module) for module in session.model.modules()}
    with session.capture_attention(capture), torch.no_grad():
        session.model(torch.tensor([IDS]))
    layers = model.model.config.num_hidden_layers
    assert capture.calls == layers
    assert capture.call_masks is not None
    assert len(capture.call_masks) == layers
    assert capture.comparison.weights is not None
    assert capture.comparison.weights < 1e-5
    assert capture.cross_paths == set()


def test_the_largest_differences_are_kept() -> None:
    comparison = Comparison("the definition")
    assert (comparison.weights, comparison.rows, comparison.compared_with) == (None, 0, "")
    comparison.add(0.25, 0.125, 3)
    comparison.add(0.125, 0.5, 4)
    assert (comparison.weights, comparison.outputs, comparison.rows) == (0.25, 0.5, 7)
    assert comparison.compared_with == "the definition"
    other = Comparison("another", widened=True)
    comparison.include(other)
    assert (comparison.weights, comparison.rows) == (0.25, 7)
    assert comparison.compared_with == "the definition, in float32"
    other.add(2.0, 0.0, 5)
    comparison.include(other)
    assert (comparison.weights, comparison.outputs, comparison.rows) == (2.0, 0.5, 12)


def test_nan_is_infinitely_far() -> None:
    comparison = Comparison("the definition")
    comparison.add(math.nan, math.nan, 1)
    comparison.add(0.0, 0.0, 1)
    assert (comparison.weights, comparison.outputs) == (math.inf, math.inf)


def test_sampled_rows_are_spread_and_distinct() -> None:
    assert [sampled_rows(n).tolist() for n in (1, 2, 4, 5, 100)] == [
        [0],
        [0, 1],
        [0, 1, 2, 3],
        [0, 1, 3, 4],
        [0, 33, 66, 99],
    ]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8, 13, 64, 257])
def test_four_calls_meet_every_text(count: int) -> None:
    met = [compared_batch_texts(call, count) for call in range(1, 5)]
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


def test_facts_stay_as_long_as_the_modules_do() -> None:
    model = opened("gpt2").model
    facts, looked = ModuleFacts(model), []
    assert facts.modules == list(model.modules())
    assert facts.paths == {id(module): path for path, module in model.named_modules()}
    assert [facts.once(looked.append) for _ in range(2)] == [None, None]
    assert looked == [model]
    model.half()  # numbers may change: what is found is where modules are
    assert facts.now() is facts
    own, block = model.transformer.h[1].mlp, model.transformer.h[1]
    block.mlp = torch.nn.Identity()
    replaced = facts.now()
    assert replaced is not facts
    assert block.mlp in replaced.modules
    assert replaced.now() is replaced
    block.mlp = own
    own.act.extra = torch.nn.Identity()  # within a module that had none
    assert facts.now() is not facts
    del own.act.extra
    assert facts.now() is facts
    own.forward = lambda states: states  # as accelerate's hooks do
    assert facts.now() is not facts
