"""Patches put into a run what another had: as hooks written by hand on eager models do; its own, to the bit."""

import copy

import pytest
import torch

import regard
from regard.capture.interventions.activations import WHATS
from regard.models.model import Model
from tests.support import hand_hooks, own_models
from tests.support.attention_outputs import make_model

RIVER, MONEY = "We sat on the quiet river bank.", "We took it from a money bank."
CLOSE = 1e-5  # of the largest number of what is compared
IDS = torch.randint(1, 101, (2, 11), generator=torch.Generator().manual_seed(5))
TARGETS = torch.randint(1, 101, (2, 7), generator=torch.Generator().manual_seed(6))


def close(a: torch.Tensor, b: torch.Tensor) -> bool:
    return float((a - b).abs().max()) <= CLOSE * max(1.0, float(b.abs().max()))


@pytest.fixture(scope="module")
def eager(minilm):
    """The default model, attending eagerly, and its inputs for the two sentences."""
    model = copy.deepcopy(minilm.model).eval()
    model.set_attn_implementation("eager")
    return model, [minilm.tokenizer(text, return_tensors="pt") for text in (RIVER, MONEY)]


def rows_at(seen: dict[str, torch.Tensor], what: str, at: list[int]) -> torch.Tensor:
    return seen[what][:, at] if what == "weights" else seen[what][at]


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("head", [None, 3])
def test_it_is_what_hooks_do_on_minilm(minilm, eager, what: str, head: int | None) -> None:
    if head is not None and what in ("hidden_states", "feed_forward"):
        pytest.skip("has no heads")
    model, (river, money) = eager
    source = minilm.trace(MONEY)
    for layer, at in ((1, [7]), (4, [2, 6, 7])):
        hands = hand_hooks.bert(model, layer)
        rows = rows_at(hands.seen(**money), what, at)
        expected = hands.patched(what, at, rows, head, **river).last_hidden_state[0]
        patch = regard.patch(what, layer=layer, at=at, source=source, head=head)
        found = minilm.trace(RIVER, interventions=[patch])
        plain = minilm.trace(RIVER)
        assert not close(found.last_hidden_state, plain.last_hidden_state)
        assert close(found.last_hidden_state, expected)
        if what == "weights":  # the map shows what was put in
            heads = slice(None) if head is None else slice(head, head + 1)
            assert float((found.attention[layer].dense()[heads, at] - rows[heads]).abs().max()) <= 1e-6


def test_a_word_is_found_in_both_texts(minilm) -> None:
    source = minilm.trace("A bank gives money to us.")
    named = minilm.trace(RIVER, interventions=[regard.patch("hidden_states", layer=2, at="bank", source=source)])
    places = regard.patch("hidden_states", layer=2, at=7, source_at=2, source=source)
    assert torch.equal(named.last_hidden_state, minilm.trace(RIVER, interventions=[places]).last_hidden_state)
    assert torch.equal(named.hidden_states[3][7], source.hidden_states[3][2])
    other = regard.patch("hidden_states", layer=2, at=[("bank", 0)], source_at="money", source=source)
    assert torch.equal(minilm.trace(RIVER, interventions=[other]).hidden_states[3][7], source.hidden_states[3][4])


@pytest.mark.parametrize("what", WHATS)
def test_its_own_changes_nothing(minilm, what: str) -> None:
    plain = minilm.trace(RIVER)
    for layer in range(6):
        again = minilm.trace(RIVER, interventions=[regard.patch(what, layer=layer, source=plain)])
        if what == "weights":
            assert close(again.last_hidden_state, plain.last_hidden_state)
            assert float((again.attention[layer].dense() - plain.attention[layer].dense()).abs().max()) <= 1e-6
        else:
            assert torch.equal(again.last_hidden_state, plain.last_hidden_state)


@pytest.mark.parametrize("layer", ["input", 0, 3, 5])
def test_all_states_of_another_text_give_its_outcome(minilm, layer) -> None:
    other = minilm.trace(MONEY)
    patch = regard.patch("hidden_states", layer=layer, source=other)
    assert torch.equal(minilm.trace(RIVER, interventions=[patch]).last_hidden_state, other.last_hidden_state)


def test_the_mean_of_several_and_zero(minilm) -> None:
    first, second = minilm.trace(RIVER), minilm.trace(MONEY)
    mean = minilm.trace(
        "A bank is here.", interventions=[regard.patch("hidden_states", layer=1, at="bank", source=[first, second])]
    )
    assert torch.equal(mean.hidden_states[2][2], (first.hidden_states[2][7] + second.hidden_states[2][7]) / 2)
    for what in ("hidden_states", "head_outputs", "values", "feed_forward"):
        assert minilm.trace(RIVER, interventions=[regard.patch(what, layer=1, at="bank", source="zero")])
    nothing = minilm.trace(RIVER, interventions=[regard.patch("head_outputs", layer=2, head=5, source="zero")])
    ablated = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(2, 5))])
    assert torch.equal(nothing.last_hidden_state, ablated.last_hidden_state)
    assert "patched: head_outputs of layer 2, head 5 at all positions, from zero" in nothing.status.notes


def test_they_are_applied_in_list_order(minilm) -> None:
    source, plain = minilm.trace(MONEY), minilm.trace(RIVER)
    patch = regard.patch("head_outputs", layer=2, head=5, source=source)
    ablate, back = regard.ablate(regard.head(2, 5)), regard.patch("head_outputs", layer=2, head=5, source=plain)

    def last(*interventions) -> torch.Tensor:
        return minilm.trace(RIVER, interventions=interventions).last_hidden_state

    assert torch.equal(last(patch, ablate), last(ablate))
    assert torch.equal(last(ablate, patch), last(patch))
    assert torch.equal(last(patch, ablate, back), plain.last_hidden_state)
    states = [regard.patch("hidden_states", layer=1, source=each) for each in (source, plain)]
    assert torch.equal(last(*states), plain.last_hidden_state)
    assert torch.equal(last(*reversed(states)), source.last_hidden_state)


def test_an_edge_ablated_after_given_weights_leaves_the_rest(minilm) -> None:
    source = minilm.trace(MONEY)
    weights = regard.patch("weights", layer=2, at=7, head=1, source=source)
    both = minilm.trace(RIVER, interventions=[weights, regard.ablate(regard.edge(7, 6, layers=2))])
    row = source.attention[2][1, 7].clone()
    row[6] = 0
    assert float((both.attention[2][1, 7] - row / row.sum()).abs().max()) <= 1e-6
    with pytest.raises(regard.RegardError, match="patch: token 7 can't attend to all keys of the given row"):
        minilm.trace(RIVER, interventions=[regard.ablate(regard.edge(7, 6, layers=2)), weights])


def test_each_text_of_a_batch_is_patched_in_its_own_places(minilm) -> None:
    texts = [RIVER, "The bank", "A bank of the river is a place to sit at."]
    source = minilm.trace(MONEY)
    for what in ("hidden_states", "head_outputs", "values", "feed_forward"):
        interventions = [regard.patch(what, layer=2, at="bank", source=source)]
        together = minilm.trace(texts, interventions=interventions)
        for text, one in zip(texts, together, strict=True):
            assert close(one.last_hidden_state, minilm.trace(text, interventions=interventions).last_hidden_state)


def test_the_heads_of_a_patched_trace_are_a_source(minilm) -> None:
    """Its outputs are those that were put in, not weights @ values."""
    source, plain = minilm.trace(MONEY), minilm.trace(RIVER)
    patched = minilm.trace(RIVER, interventions=[regard.patch("head_outputs", layer=2, source=source)])
    again = minilm.trace(RIVER, interventions=[regard.patch("head_outputs", layer=2, source=patched)])
    assert torch.equal(again.last_hidden_state, patched.last_hidden_state)
    assert not torch.equal(again.last_hidden_state, plain.last_hidden_state)


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("head", [None, 1])
def test_grouped_heads_of_a_decoder(what: str, head: int | None) -> None:
    if head is not None and what in ("hidden_states", "feed_forward"):
        pytest.skip("has no heads")
    eager = make_model("llama", num_key_value_heads=2)
    opened = Model(make_model("llama", num_key_value_heads=2), None, name="llama")
    source, at = opened.trace(ids=IDS[1]), [3, 9]
    hands = hand_hooks.llama(eager, 0)
    rows = rows_at(hands.seen(input_ids=IDS[1:]), what, at)
    expected = hands.patched(what, at, rows, head, input_ids=IDS[:1]).last_hidden_state[0]
    found = opened.trace(ids=IDS[0], interventions=[regard.patch(what, layer=0, at=at, source=source, head=head)])
    assert close(found.last_hidden_state, expected)
    assert not close(found.last_hidden_state, opened.trace(ids=IDS[0]).last_hidden_state)


@pytest.mark.parametrize("what", WHATS)
@pytest.mark.parametrize("part", ["encoder", "decoder", "cross"])
def test_an_encoder_decoder(what: str, part: str) -> None:
    if part == "cross" and what in ("hidden_states", "feed_forward"):
        with pytest.raises(regard.RegardError, match=f'patch: {what} belong to "encoder" or "decoder"'):
            regard.patch(what, layer=0, part=part, source="zero")
        return
    opened = Model(make_model("marian"), None, name="marian")
    source = opened.trace(ids=IDS[1], target_ids=TARGETS[1])
    hands, at = hand_hooks.marian(make_model("marian"), 0, part), [2, 5]
    inputs = [{"input_ids": IDS[n : n + 1], "decoder_input_ids": TARGETS[n : n + 1]} for n in (0, 1)]
    rows = rows_at(hands.seen(**inputs[1]), what, at)
    expected = hands.patched(what, at, rows, None, **inputs[0]).last_hidden_state[0]
    patch = regard.patch(what, layer=0, at=at, source=source, part=part)
    found = opened.trace(ids=IDS[0], target_ids=TARGETS[0], interventions=[patch])
    assert close(found.decoder.last_hidden_state, expected)
    plain = opened.trace(ids=IDS[0], target_ids=TARGETS[0])
    assert not torch.equal(found.decoder.last_hidden_state, plain.decoder.last_hidden_state)


@pytest.mark.parametrize("kind", ["gpt", "post-norm", "llama", "alibi", "bert", "sines"])
def test_transformers_of_ours(kind: str) -> None:
    model = own_models.opened(kind)
    text, other = "A man is money", "She takes is bank"
    plain, source = model.trace(text), model.trace(other)
    for what in WHATS:
        own = model.trace(text, interventions=[regard.patch(what, layer=1, source=plain)])
        assert torch.equal(own.last_hidden_state, plain.last_hidden_state) or (
            what == "weights" and close(own.last_hidden_state, plain.last_hidden_state)
        )
        patched = model.trace(text, interventions=[regard.patch(what, layer=1, at=1, source=source)])
        assert not close(patched.last_hidden_state, plain.last_hidden_state)
    moved = model.trace(text, interventions=[regard.patch("hidden_states", layer=0, source=source)])
    assert torch.equal(moved.last_hidden_state, source.last_hidden_state)


def test_a_module_that_is_every_layer() -> None:
    """ALBERT: layers are counted as they run."""
    opened = Model(make_model("albert", num_hidden_layers=3), None, name="albert")
    plain, source = opened.trace(ids=IDS[0]), opened.trace(ids=IDS[1])
    for what in ("hidden_states", "feed_forward"):
        patched = opened.trace(ids=IDS[0], interventions=[regard.patch(what, layer=1, source=source)])
        same = [torch.equal(a, b) for a, b in zip(plain.hidden_states, patched.hidden_states, strict=True)]
        assert same == [True, True, False, False]
        own = opened.trace(ids=IDS[0], interventions=[regard.patch(what, layer=1, source=plain)])
        assert torch.equal(own.last_hidden_state, plain.last_hidden_state)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_does_not_fit_is_refused_in_one_line(minilm) -> None:
    source, short = minilm.trace(MONEY), minilm.trace("A bank.")
    for make, says in (
        (lambda: regard.patch("states", layer=1, source=source), "what: got 'states', expected one of 'hidden_states'"),
        (lambda: regard.patch("values", layer="input", source=source), 'patch: layer="input" is the input of layer 0'),
        (lambda: regard.patch("values", layer=-1, source=source), "layer: got -1, expected a number of 0 or more"),
        (lambda: regard.patch("hidden_states", layer=1, head=2, source=source), "patch: hidden_states have no heads"),
        (lambda: regard.patch("values", layer=1, source="ones"), "source: got 'ones', expected a trace, traces"),
        (lambda: regard.patch("values", layer=1, source=[]), "source: got none, expected a trace"),
        (lambda: regard.patch("values", layer=1, at=[], source=source), "at: got none, expected at least one position"),
        (lambda: regard.patch("values", layer=1, at=1.5, source=source), "at: got 1.5, expected a word, an occurrence"),
        (lambda: regard.patch("values", layer=1, source_at=1, source=source), "source_at needs at: pass"),
        (lambda: regard.patch("weights", layer=1, source="zero"), 'weights sum to 1 and cannot be "zero"'),
    ):
        with pytest.raises(regard.RegardError, match=says):
            make()
    for patch, says in (
        (regard.patch("values", layer=6, at=1, source=source), "there are 6"),
        (regard.patch("hidden_states", layer=6, at=1, source="zero"), "layer 6 is out of range, .* has layers 0 to 5"),
        (regard.patch("head_outputs", layer=6, at=1, source="zero"), "layer 6 is out of range, .* has layers 0 to 5"),
        (regard.patch("values", layer=1, at=1, head=12, source=source), "head 12 is out of range"),
        (regard.patch("values", layer=1, at=1, head=12, source="zero"), "head 12 is out of range"),
        (regard.patch("values", layer=1, at="river", source=source), "word 'river' is not in the text"),
        (regard.patch("values", layer=1, at="lake", source=source), "word 'lake' is not in the text"),
        (regard.patch("values", layer=1, at=10, source=source), "at: token 10 is out of range"),
        (regard.patch("values", layer=1, source=short), "all positions is 10 tokens, in the source .* is 5"),
        (regard.patch("values", layer=1, at=[1, 2], source_at="bank", source=source), "is 2 tokens, .* “bank” is 1"),
        (regard.patch("values", layer=1, at=[7, "bank"], source=source), "at: names token 7 twice"),
        (regard.patch("weights", layer=1, at="bank", source=short), "the source has 5, this text 10"),
        (regard.patch("values", layer=1, part="encoder", source=source), "is not an encoder-decoder: leave out part"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            minilm.trace(RIVER, interventions=[patch])
    with pytest.raises(regard.RegardError, match="window: in windows you can only ablate heads, not edges"):
        minilm.trace(RIVER, window=6, interventions=[regard.patch("values", layer=1, at=1, source=source)])


STEER_RIVER, STEER_MONEY = "We sat on the quiet river bank.", "Money is in the bank."


def close_steer(a: torch.Tensor, b: torch.Tensor) -> bool:
    return float((a - b).abs().max()) <= 1e-5 * max(1.0, float(b.abs().max()))


def test_it_is_what_a_hook_does_on_minilm(minilm) -> None:
    eager = copy.deepcopy(minilm.model).eval()
    eager.set_attn_implementation("eager")
    inputs, vector = minilm.tokenizer(STEER_RIVER, return_tensors="pt"), torch.randn(384)
    for at, places in ((None, list(range(10))), ("bank", [7])):
        rows = (2.5 * vector).expand(len(places), -1)
        expected = hand_hooks.bert(eager, 3).patched("hidden_states", places, rows, adds=True, **inputs)
        found = minilm.trace(STEER_RIVER, interventions=[regard.steer(vector, layer=3, at=at, strength=2.5)])
        assert close_steer(found.last_hidden_state, expected.last_hidden_state[0])
    assert found.status.notes == ("steered: output of layer 3 at “bank”, by 2.5 × a given vector",)


def test_the_vector_of_two_texts(minilm) -> None:
    river, money = minilm.trace(STEER_RIVER), minilm.trace(STEER_MONEY)
    expected = river.hidden_states[4].mean(0) - money.hidden_states[4].mean(0)
    assert torch.equal(regard.steering_vector(river, money, layer=3), expected)
    entering = river.hidden_states[0].mean(0) - money.hidden_states[0].mean(0)
    assert torch.equal(regard.steering_vector(river, money, layer="input"), entering)
    by_traces = minilm.trace("A bank", interventions=[regard.steer((river, money), layer=3, strength=2)])
    by_vector = minilm.trace("A bank", interventions=[regard.steer(expected, layer=3, strength=2)])
    assert torch.equal(by_traces.last_hidden_state, by_vector.last_hidden_state)
    plain = minilm.trace("A bank")
    assert close_steer(by_traces.hidden_states[4] - plain.hidden_states[4], (2 * expected).expand(4, -1))
    assert f"by 2 × (the mean state of {STEER_RIVER!r} less that of {STEER_MONEY!r})" in by_traces.status.notes[-1]


def test_pushes_add_up_and_a_patch_after_them_counts(minilm) -> None:
    plain, vector = minilm.trace(STEER_RIVER), torch.randn(384)

    def last(*interventions) -> torch.Tensor:
        return minilm.trace(STEER_RIVER, interventions=interventions).last_hidden_state

    push, back = regard.steer(vector, layer=2), regard.steer(vector, layer=2, strength=-1.0)
    assert close_steer(last(push, back), plain.last_hidden_state)
    own = regard.patch("hidden_states", layer=2, source=plain)
    assert torch.equal(last(push, own), plain.last_hidden_state)
    assert torch.equal(last(own, push), last(push))


def test_each_side_of_an_encoder_decoder() -> None:
    opened = Model(make_model("marian"), None, name="marian")
    target, vector = IDS[1, :7], torch.randn(24)
    inputs = {"input_ids": IDS[:1], "decoder_input_ids": target[None]}
    for part, length in (("encoder", 11), ("decoder", 7)):
        hands = hand_hooks.marian(make_model("marian"), 0, part)
        rows = vector.expand(length, -1)
        expected = hands.patched("hidden_states", list(range(length)), rows, adds=True, **inputs)
        steered = opened.trace(ids=IDS[0], target_ids=target, interventions=[regard.steer(vector, layer=0, part=part)])
        assert close_steer(steered.decoder.last_hidden_state, expected.last_hidden_state[0])
    pair = opened.trace(ids=IDS[0], target_ids=target)
    assert regard.steering_vector(pair, pair, layer=0, part="decoder").abs().max() == 0
    with pytest.raises(regard.RegardError, match="for traces of text pairs, pass part="):
        regard.steering_vector(pair, pair, layer=0)


def test_a_transformer_of_ours() -> None:
    model = own_models.opened("gpt")
    plain, vector = model.trace("A man is money"), torch.randn(12)
    steered = model.trace("A man is money", interventions=[regard.steer(vector, layer="input", at=2)])
    assert close_steer(steered.hidden_states[0][2], plain.hidden_states[0][2] + vector)
    assert torch.equal(steered.hidden_states[0][[0, 1, 3]], plain.hidden_states[0][[0, 1, 3]])


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_cannot_be_is_refused_in_one_line(minilm) -> None:
    vector, trace = torch.randn(384), minilm.trace(STEER_RIVER)
    for make, says in (
        (lambda: regard.steer(torch.randn(2, 3), layer=1), r"got a tensor of shape \(2, 3\), expected a vector"),
        (lambda: regard.steer([trace], layer=1), "steer: got list, expected a vector \\(M,\\) or two traces"),
        (lambda: regard.steer(vector * torch.nan, layer=1), "the vector holds NaN or infinity"),
        (lambda: regard.steer(vector, layer=1, strength="x"), "strength: got 'x', expected a number"),
        (lambda: regard.steer(vector, layer=1, part="cross"), 'hidden states belong to "encoder" or "decoder"'),
        (lambda: regard.steer((trace, 3), layer=1), "steering_vector: got int, expected two traces"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            make()
    for steer, says in (
        (regard.steer(torch.randn(7), layer=1), "got vectors of 7 components, but .* has 384"),
        (regard.steer(vector, layer=6), "layer 6 is out of range, .* has layers 0 to 5"),
        (regard.steer(vector, layer=1, at="lake"), "word 'lake' is not in the text"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            minilm.trace(STEER_RIVER, interventions=[steer])
