"""Linear maps by oneDNN: the same numbers, where they are large, float32, on the CPU, and need no gradient."""

import pytest
import torch
from torch.nn import functional as F

from regard.attention.kernels import matmul as chosen
from regard.capture import fast_linear
from regard.capture.fast_linear import FastProducts
from regard.models.model import Model
from regard.trace.attention_output import AttentionOutput
from tests.capture.test_eager_attention import tiny

onednn = pytest.mark.skipif(not chosen.onednn_works(), reason="this torch has no oneDNN product")


@pytest.fixture
def counted(monkeypatch) -> list[tuple[int, ...]]:
    """Takes oneDNN whatever is faster here, for every size, and tells the shapes of what went through it."""
    shapes: list[tuple[int, ...]] = []
    original = fast_linear._linear

    def counting(*given, **options):
        result = original(*given, **options)
        if result is not None:
            shapes.append(tuple(result.shape))
        return result

    monkeypatch.setattr(fast_linear, "_linear", counting)
    monkeypatch.setattr(fast_linear, "LEAST", 1)
    monkeypatch.setattr(chosen, "linear", lambda: chosen.onednn)
    return shapes


@onednn
def test_it_is_the_same_map(counted) -> None:
    generator = torch.Generator().manual_seed(0)
    given, weight = torch.randn(3, 17, 29, generator=generator), torch.randn(41, 29, generator=generator)
    bias, stored = torch.randn(41, generator=generator), torch.randn(29, 41, generator=generator)
    with torch.no_grad(), FastProducts():
        found = (
            F.linear(given, weight, bias),
            F.linear(given.transpose(0, 1), weight),  # of no contiguous input
            torch.addmm(bias, given.view(-1, 29), stored),
        )
    wide = given.double()
    expected = (
        wide @ weight.double().T + bias,
        wide.transpose(0, 1) @ weight.double().T,
        wide.view(-1, 29) @ stored.double() + bias,
    )
    assert counted == [(3, 17, 41), (17, 3, 41), (51, 41)]
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.double(), theirs, atol=2e-5, rtol=0)


@onednn
def test_what_is_left_to_pytorch(counted) -> None:
    given, weight = torch.randn(17, 29), torch.randn(41, 29)
    with FastProducts():
        learning = torch.nn.Linear(29, 41)
        assert learning(given).requires_grad  # gradients are wanted
        with torch.no_grad():
            F.linear(given[:15], weight)  # few rows
            F.linear(given.double(), weight.double())
            F.linear(given, torch.randn(29, 41).t())
            torch.addmm(torch.randn(17, 41), given, torch.randn(29, 41))  # no bias
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert F.linear(given, weight).dtype == torch.bfloat16
    assert counted == []


def test_short_texts_do_not_wait_for_a_choice(monkeypatch) -> None:
    def never() -> None:
        raise AssertionError("measured")

    monkeypatch.setattr(chosen, "product", never)
    with torch.no_grad(), FastProducts():
        F.linear(torch.randn(12, 384), torch.randn(384, 384))


@onednn
def test_a_trace_is_that_of_the_model_alone(minilm, counted) -> None:
    text = "a man fishing on a river bank " * 3
    trace = minilm.trace(text)
    assert len(counted) == 6 * 6  # query, key, value, output and both of the feed-forward, in six layers
    with torch.no_grad():
        alone = minilm.model(**minilm.tokenizer(text, return_tensors="pt")).last_hidden_state[0]
    torch.testing.assert_close(trace.contextual, alone, atol=2e-5, rtol=0)
    assert isinstance(trace.attention_outputs[0], AttentionOutput)  # the projection is followed all the same
    assert fast_linear.REORDERED in trace.status.notes


def test_a_trace_says_nothing_of_maps_that_pytorch_made(minilm, monkeypatch) -> None:
    monkeypatch.setattr(chosen, "linear", lambda: chosen.blas)
    assert fast_linear.REORDERED not in minilm.trace("a man fishing on a river bank " * 30).status.notes


@onednn
@pytest.mark.parametrize("kind", ["mpnet", "gptj", "bloom", "xlnet"])
def test_a_family_with_attention_of_its_own_is_left_to_pytorch(counted, kind: str) -> None:
    """Its weights are those that it reports itself, so they have to be those of the model as it is, to the last bit."""
    model, ids = tiny(kind), [5, 17, 3, 60, 41, 9, 2] * 4
    trace = Model(model, None, name=kind).trace(ids=ids)
    assert counted == []
    with torch.no_grad():
        plain = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    for ours, theirs in zip(trace.attention, plain.attentions, strict=True):
        torch.testing.assert_close(ours.dense(), theirs[0], atol=trace.status.difference, rtol=0)
    for ours, theirs in zip(trace.hidden_states[:-1], plain.hidden_states[:-1], strict=True):
        assert torch.equal(ours, theirs[0])
    assert torch.equal(trace.contextual, plain.last_hidden_state[0])
    assert trace.status.difference < 5e-7
    assert fast_linear.REORDERED not in trace.status.notes
