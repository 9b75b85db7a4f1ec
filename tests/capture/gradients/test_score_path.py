"""The parts of a query and a key: what they are made of, and what is refused."""

import pytest
import torch

from regard.capture.gradients.score_path import AttributionTarget, SideParts, Writer, outcome_path, score_path
from regard.capture.interventions.names import CallId
from regard.errors import RegardError
from regard.models.inputs import model_source_of_trace
from regard.models.model import Model
from regard.text.tokens import encoded_ids
from tests.support.attention_outputs import make_model
from tests.support.own_models import KINDS, TEXTS, opened, pair

IDS = [3, 1, 4, 15, 9, 2, 6]


def split(model: Model, ids: list[int], layer: int, head: int, query: list[int], keys: list[list[int]]):
    """The parts of one call's query and keys."""
    return score_path(model._session, encoded_ids(ids), None, CallId(None, layer), head, query, keys)


def shaken(kind: str, changes: dict[str, object] | None = None) -> Model:
    """A tiny model of a family, its biases and the weights of its norms drawn at random."""
    model = make_model(kind, **(changes or {}))
    torch.manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:
                parameter += 0.2 * torch.randn_like(parameter)
    return Model(model, None, name=kind)


def far(side: SideParts, traced: torch.Tensor) -> float:
    return float((side.vectors.sum(0) - traced.double()).norm() / traced.norm())


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_ours_sum_to_query_and_key(kind: str) -> None:
    model = opened(kind)
    model.model.double()  # in float32 a query's own rounding is 1.2e-6 by the products of some processors
    with torch.no_grad():
        for parameter in model.model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    trace = model.trace(TEXTS[0])
    source = model_source_of_trace(model._reader, trace)
    query, (key, mean) = score_path(model._session, source, None, CallId(None, 1), 2, [5], [[3], [1, 3, 4]])
    own = trace.attention[1]
    group = 2 * own.key.shape[1] // 3
    assert far(query, own.query[0, 2, 5]) < 1e-6
    assert far(key, own.key[0, group, 3]) < 1e-6
    assert far(mean, own.key[0, group, [1, 3, 4]].mean(0)) < 1e-6
    assert (query.tokens, mean.tokens) == ((5,), (1, 3, 4))
    written = {(each.kind, each.layer) for each in query.writers}
    assert {("token", None), ("attention", 0), ("feed-forward", 0)} <= written
    assert ("position", None) in written or KINDS[kind].get("positions") in ("rotary", "alibi")
    assert (("bias", 1) in written) == KINDS[kind].get("bias", True)
    looks = {(each.head, each.source) for each in query.writers if each.kind == "attention"}
    causal = KINDS[kind].get("kind") != "encoder"
    assert looks == {(head, source) for head in range(3) for source in range(6 if causal else len(trace.tokens))}


def test_an_encoder_decoder_has_parts_of_both_sides() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    source, target = (encoded_ids([token.id for token in side.tokens]) for side in trace.sides)
    query, (key,) = score_path(model._session, source, target, CallId("cross", 1), 2, [2], [[3]])
    own = trace.decoder.cross[1]
    assert far(query, own.query[0, 2, 2]) < 1e-6
    assert far(key, own.key[0, 2, 3]) < 1e-6
    crossing = {each.layer for each in query.writers if each.cross}
    assert crossing == {0}  # below layer 1
    assert {each.side for each in query.writers} == {"decoder"}
    assert Writer("token", side="encoder") in key.writers
    assert {each.side for each in key.writers if each.kind != "bias"} == {"encoder"}


FAMILIES = [
    ("albert", {}),
    ("qwen3", {"num_key_value_heads": 2, "head_dim": 6}),  # norms of queries and keys
    ("gemma2", {"num_key_value_heads": 2, "head_dim": 6}),  # norms on both sides, a softcap
    ("olmo2", {}),
    ("phi", {}),  # parallel
    ("modernbert", {}),
    ("granite", {"residual_multiplier": 0.3}),
    ("gpt2", {}),
]


@pytest.mark.parametrize(("kind", "changes"), FAMILIES)
def test_families(kind: str, changes: dict[str, object]) -> None:
    model = shaken(kind, changes)
    trace = model.trace(ids=IDS)
    layer = len(trace.attention) - 1
    query, (key,) = split(model, IDS, layer, 1, [5], [[2]])
    own = trace.attention[layer]
    assert far(query, own.query[0, 1, 5]) < 2e-6
    assert far(key, own.key[0, own.key.shape[1] // own.query.shape[1], 2]) < 2e-6


def test_what_stands_between_is_named() -> None:
    model = shaken("llama")
    for layer in model.model.layers:
        layer.self_attn.q_proj = torch.nn.Sequential(layer.self_attn.q_proj, torch.nn.Tanh())
    with pytest.raises(RegardError, match="query isn't a linear function of the residual stream: 'tanh' is in between"):
        split(model, IDS, 1, 0, [5], [[2]])


def test_a_stream_that_is_not_added_to_is_refused() -> None:
    model = shaken("llama")
    model.model.layers[0].register_forward_hook(lambda module, args, output: output.tanh())
    with pytest.raises(RegardError, match="isn't a linear function"):
        split(model, IDS, 1, 0, [5], [[2]])


def test_the_model_is_left_as_it_was() -> None:
    model = shaken("bert")
    before = model.trace(ids=IDS).last_hidden_state
    split(model, IDS, 1, 0, [5], [[2]])
    torch.testing.assert_close(model.trace(ids=IDS).last_hidden_state, before, rtol=0, atol=0)
    assert all(parameter.grad is None and parameter.requires_grad for parameter in model.model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.model.modules())


@pytest.mark.parametrize("kind", [each for each in KINDS if each != "bert"])
def test_a_logit_of_ours(kind: str) -> None:
    model = opened(kind)
    with torch.no_grad():
        for parameter in model.model.parameters():
            if parameter.ndim == 1:
                parameter += 0.3 * torch.randn_like(parameter)
    trace = model.trace(TEXTS[0])
    source = encoded_ids([token.id for token in trace.tokens])
    parts = outcome_path(model._session, source, None, AttributionTarget(7, 3), [2, 5])
    expected = (trace.logits[:, 7] - trace.logits[:, 3])[[2, 5]].mean()
    assert float(parts.vectors.sum()) == pytest.approx(float(expected), abs=1e-5)
    written = {(each.kind, each.layer) for each in parts.writers}
    assert {("attention", 1), ("feed-forward", 1), ("token", None)} <= written
    biased = KINDS[kind].get("bias", True) and KINDS[kind].get("norm_first", True)
    assert (("final bias", None) in written) == biased  # the last norm's, told apart from those before layer 0


@pytest.mark.parametrize("kind", ["bert", "llama", "albert"])
def test_a_cosine_of_the_last_state(kind: str) -> None:
    model = shaken(kind)
    trace = model.trace(ids=IDS)
    direction = torch.randn(trace.last_hidden_state.shape[1])
    parts = outcome_path(model._session, encoded_ids(IDS), None, AttributionTarget(direction=direction), [1, 4])
    expected = torch.cosine_similarity(trace.last_hidden_state[[1, 4]].mean(0), direction, dim=0)
    assert float(parts.vectors.sum()) == pytest.approx(float(expected), abs=1e-6)
    assert float(parts.whole[0]) == pytest.approx(float(expected), abs=1e-6)


def test_a_decoders_logit_has_parts_across() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    source, target = (encoded_ids([token.id for token in side.tokens]) for side in trace.sides)
    parts = outcome_path(model._session, source, target, AttributionTarget(7), [2])
    assert float(parts.vectors.sum()) == pytest.approx(float(trace.decoder.logits[2, 7]), abs=1e-5)
    assert {each.side for each in parts.writers} == {"decoder"}  # what the encoder wrote comes by attention alone
    assert {each.layer for each in parts.writers if each.cross} == {0, 1}


def test_what_is_refused() -> None:
    model = shaken("bert")
    with pytest.raises(RegardError, match="it has no language head, so no logits: pass a direction, toward="):
        outcome_path(model._session, encoded_ids(IDS), None, AttributionTarget(7), [2])
    capped = opened("llama")
    head = capped.model.get_output_embeddings()
    assert head is not None
    head.register_forward_hook(lambda module, args, logits: logits.tanh())
    with pytest.raises(
        RegardError, match="the logit isn't a linear function of the residual stream: 'tanh' is in between"
    ):
        outcome_path(capped._session, encoded_ids([3, 4, 5]), None, AttributionTarget(7), [2])
