"""Steps from layer to layer: against what the models' own modules give, in every shape of block, and adding up."""

import math

import pytest
import torch

import regard
from regard.explain.causes.contributions import contributions
from regard.explain.causes.layer_updates import LayerUpdate, layer_updates
from regard.models.model import Model
from regard.trace.trace import PairTrace, Trace
from tests.support.attention_outputs import make_model, traced

IDS = torch.randint(1, 101, (2, 13), generator=torch.Generator().manual_seed(3))
# What the attention block leaves behind (post-norm), or adds, is what this module gives.
FAMILIES = [
    ("bert", {}, "attention.output.LayerNorm"),
    ("albert", {}, "attention.LayerNorm"),
    ("gpt2", {}, "attn.c_proj"),
    ("llama", {"num_key_value_heads": 2}, "o_proj"),
    ("gemma2", {"num_key_value_heads": 2, "head_dim": 6}, "post_attention_layernorm"),
    ("phi", {}, "self_attn.dense"),
]


def along(vector: torch.Tensor, step: torch.Tensor) -> float:
    return float(vector @ step / (step @ step))


def adds_up(step: LayerUpdate) -> None:
    parts = [each for each in (step.attention, step.cross) if each is not None]
    assert math.isclose(sum(part.share for part in parts) + step.feed_forward_share, 1, abs_tol=1e-9)
    for part in parts:
        total = part.sources_share + part.norm_share + part.bias_share
        assert math.isclose(total, part.share, abs_tol=1e-5 + 1e-5 * abs(part.share))
    assert step.error <= 1e-5


@pytest.mark.parametrize(("kind", "changes", "module"), FAMILIES)
def test_each_layers_parts_are_those_of_its_modules(kind: str, changes: dict, module: str) -> None:
    model, kept = make_model(kind, **changes), []
    handles = [
        each.register_forward_hook(lambda _m, _a, out: kept.append(out[-1].double()))  # text 1, the last
        for path, each in model.named_modules()
        if path.endswith(module)
    ]
    trace = traced(model, IDS, 1)
    for handle in handles:
        handle.remove()
    post = module.endswith("LayerNorm")
    for place, rows in ((5, [5]), (regard.text.words.Word("w03 w04 w05", 12, 23, (3, 4, 5)), [3, 4, 5])):
        found = layer_updates(trace, place, top=13)
        assert [step.layer for step in found] == [0, 1]
        for n, step in enumerate(found):
            enters, leaves, given = (
                x[rows].double().mean(0) for x in (trace.hidden_states[n], trace.hidden_states[n + 1], kept[n])
            )
            attention = given - enters if post else given
            whole, rest = leaves - enters, leaves - enters - attention
            adds_up(step)
            assert step.cross is None
            assert math.isclose(step.length, float(whole.norm()), rel_tol=1e-9)
            assert math.isclose(step.attention.share, along(attention, whole), abs_tol=1e-5)
            assert math.isclose(step.attention.length, float(attention.norm()), rel_tol=1e-5)
            assert math.isclose(step.feed_forward_share, along(rest, whole), abs_tol=1e-5)
            assert math.isclose(step.feed_forward_length, float(rest.norm()), rel_tol=1e-4)
            assert (step.attention.norm_share == 0) == (not post)
            sources = contributions(trace, place, n).sources()
            assert sorted(source.token for source in step.attention.top if source.length) == [
                m for m in range(13) if bool(sources[m].any())
            ]
            for source in step.attention.top:
                assert source.text == trace.tokens[source.token].text
                assert math.isclose(source.share, along(sources[source.token], whole), abs_tol=1e-9)
                assert math.isclose(source.length, float(sources[source.token].norm()), abs_tol=1e-9)
            sizes = [abs(source.share) for source in step.attention.top]
            assert sizes == sorted(sizes, reverse=True)


@pytest.fixture(scope="module", params=["marian", "t5"])
def pair(request) -> PairTrace:
    model = Model(make_model(request.param), None, name=request.param)
    return model.trace(ids=IDS[0], target_ids=IDS[1, :7])


def test_a_target_word_has_three_parts(pair: PairTrace) -> None:
    decoder = pair.decoder
    for layer, step in enumerate(layer_updates(pair, 4, top=20)):
        adds_up(step)
        enters, leaves = (decoder.hidden_states[n][4].double() for n in (layer, layer + 1))
        first, second = (contributions(decoder, 4, layer, part=part).vector for part in (None, "cross"))
        assert math.isclose(step.attention.share, along(first - enters, leaves - enters), abs_tol=1e-6)
        assert math.isclose(step.cross.share, along(second - first, leaves - enters), abs_tol=1e-6)
        assert math.isclose(step.feed_forward_share, along(leaves - second, leaves - enters), abs_tol=1e-6)
        assert sorted(source.token for source in step.cross.top) == list(range(13))
        assert all(source.text == pair.encoder.tokens[source.token].text for source in step.cross.top)
        assert {source.token for source in step.attention.top if source.length} <= set(range(5))  # causal


def test_sides_of_an_encoder_decoder(pair: PairTrace) -> None:
    for step in layer_updates(pair.encoder, 4):
        adds_up(step)
        assert step.cross is None
    with pytest.raises(
        regard.RegardError, match=r"is an encoder-decoder: pass the whole trace for a word of the target"
    ):
        layer_updates(pair.decoder, 4)


def test_layers_without_attention_have_none_of_it() -> None:
    """LFM2: some layers are convolutions."""
    types = ["conv", "full_attention", "conv"]
    model = make_model("lfm2", num_hidden_layers=3, layer_types=types, num_key_value_heads=2)
    found = layer_updates(traced(model, IDS), 5)
    assert [step.attention is not None for step in found] == [False, True, False]
    assert [step.feed_forward_share for step in found if step.attention is None] == [pytest.approx(1)] * 2
    for step in found:
        adds_up(step)


def test_what_has_no_exact_split_is_refused_by_name() -> None:
    with pytest.raises(
        regard.RegardError, match="layer 0 of diffllama makes 2 attention calls, so that its step has no exact split"
    ):
        layer_updates(traced(make_model("diffllama"), IDS), 5)
    trace = traced(make_model("llama"), IDS)
    trace.hidden_states = (trace.hidden_states[0], trace.hidden_states[1] * 1.001, trace.hidden_states[2])
    with pytest.raises(regard.RegardError, match="layer 1 of llama applies another operation before its attention"):
        layer_updates(trace, 5)
    hybrid: Trace = traced(make_model("llama"), IDS)
    hybrid.hidden_states = (*hybrid.hidden_states, hybrid.hidden_states[0], hybrid.hidden_states[1])
    hybrid.hidden_states = (
        hybrid.hidden_states[0],
        hybrid.hidden_states[2],
        hybrid.hidden_states[2],
        hybrid.hidden_states[3],
    )
    with pytest.raises(regard.RegardError, match="layer 1 of llama applies another operation before its attention"):
        layer_updates(hybrid, 5)
    with pytest.raises(regard.RegardError, match="token 13 is out of range"):
        layer_updates(trace, 13)
