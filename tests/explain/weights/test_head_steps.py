"""Every step of a head follows from the ones before, and ends at the weights of the model's own map."""

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.errors import RegardError
from regard.explain.weights.head_steps import head_steps, steps
from regard.models.model import Model
from tests.support import RIVER


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_step_follows_from_those_before(data: st.DataObject) -> None:
    torch.manual_seed(data.draw(st.integers(0, 999)))
    heads, groups = data.draw(st.sampled_from([(1, 1), (6, 3), (5, 1)]))
    query, key, value = torch.randn(1, heads, 7, 5), torch.randn(1, groups, 11, 5), torch.randn(1, groups, 11, 3)
    softcap = data.draw(st.sampled_from([None, 2.0]))
    bias = data.draw(st.sampled_from([None, torch.randn(heads, 7, 11), torch.randn(11)]))
    sinks = data.draw(st.sampled_from([None, torch.randn(heads)]))
    causal = data.draw(st.booleans())
    rule = {"softcap": softcap, "bias": bias, "sinks": sinks, "causal": causal}
    result = regard.attend(query, key, value, **rule)
    head, row = data.draw(st.integers(0, heads - 1)), data.draw(st.integers(0, 6))
    found = steps(result.weights, value[0], row, head=head)
    expected = result.output[0, head, row].double()
    torch.testing.assert_close(found.context, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(found.products, found.key @ found.query)
    torch.testing.assert_close(found.scaled, found.products * 5**-0.5)
    if softcap is not None:
        torch.testing.assert_close(found.capped, softcap * torch.tanh(found.scaled / softcap))
    seen = found.scores.isfinite()
    assert int(seen.sum()) == (row + 5 if causal else 11)  # the last query stands at the last key
    torch.testing.assert_close(found.scores[seen], (found.capped + found.bias)[seen])
    extra = 0.0 if found.sink is None else torch.tensor(found.sink).double().exp()
    grown = found.scores.exp()
    torch.testing.assert_close(found.weights, grown / (grown.sum() + extra))
    torch.testing.assert_close(found.weighted, found.weights[:, None] * found.value)
    torch.testing.assert_close(found.context, found.weighted.sum(0))


def test_a_map_without_heads() -> None:
    x = torch.randn(5, 3)
    weights = regard.attend(x, x, x).weights
    torch.testing.assert_close(steps(weights, x, 2).weights.float(), weights[2])


def test_a_record_that_is_not_the_map_s_is_refused(monkeypatch) -> None:
    x = torch.randn(5, 3)
    weights = regard.attend(x, x, x).weights
    assert steps(weights, x, 2).error < 1e-6
    monkeypatch.setattr("regard.explain.weights.head_steps.TOLERANCE", -1.0)
    with pytest.raises(RegardError, match=r"steps of query 2, head 0 are .* from the map's weights"):
        steps(weights, x, 2)


def test_steps_of_the_default_model(minilm) -> None:
    trace = minilm.trace(RIVER)
    found = head_steps(trace, 11, 0, 3)
    assert found.error < 1e-6
    assert found.scale == pytest.approx(32**-0.5, rel=1e-15)  # transformers takes a power, regard a root
    torch.testing.assert_close(found.weights.float(), trace.attention[0][3, 11], atol=1e-6, rtol=0)
    torch.testing.assert_close(found.context, trace.values[0][3].double().T @ found.weights)


def test_cross_attention_has_steps_too() -> None:
    torch.manual_seed(0)
    config = transformers.T5Config(vocab_size=97, d_model=24, d_kv=8, d_ff=37, num_layers=2, num_heads=3,
                                   decoder_start_token_id=0)  # fmt: skip
    pair = Model(transformers.T5ForConditionalGeneration(config).eval(), None, name="t5").trace(
        ids=[5, 7, 11, 13, 17], target_ids=[3, 19, 23]
    )
    found = head_steps(pair.decoder, 1, 1, 2, part="cross")
    torch.testing.assert_close(found.weights.float(), pair.decoder.cross[1][2, 1], atol=1e-6, rtol=0)
    own = head_steps(pair.encoder, 4, 0, 1)
    assert own.bias.abs().max() > 0  # T5's relative positions


@pytest.mark.parametrize(
    ("token", "layer", "head", "says"),
    [
        (99, 0, 0, "token 99 is out of range: there are tokens 0 to 13"),
        (0, 6, 0, "layer 6 is out of range: there are layers 0 to 5"),
        (0, 0, 12, "head 12 is out of range: there are heads 0 to 11"),
        (-1, 0, 0, "token -1"),
        (0, -7, 0, "layer -7 is out of range: there are layers 0 to 5, or -6 to -1 from the end"),
    ],
)
def test_places_that_do_not_exist(minilm, token: int, layer: int, head: int, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        head_steps(minilm.trace(RIVER), token, layer, head)


def test_a_query_that_sees_nothing() -> None:
    x = torch.randn(3, 5)
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, False]])
    with pytest.raises(RegardError, match="query 1 can't attend to any key"):
        steps(regard.attend(x, x, x, mask=mask).weights, x, 1)
