"""Ablations mean the attention that the trace shows under the same number, in every kind of model."""

import pytest
import torch

import regard
from regard.attention.ablation import EdgeAblation, HeadAblation, ablating
from regard.attention.recording import record
from regard.capture.hf_attention import through_interface
from regard.capture.hooks import record_layers
from regard.capture.interventions import names
from regard.capture.interventions.ablation import CallChange, applied
from regard.capture.interventions.names import PARTS, Head
from regard.capture.state import Capture, ModuleIndex
from regard.models.model import Model
from regard.trace.trace import Trace
from tests.support.attention_outputs import make_model

IDS = torch.randint(1, 101, (2, 11), generator=torch.Generator().manual_seed(5))
TARGET = IDS[1, :7].flip(0)


def opened(kind: str, **changes) -> Model:
    return Model(make_model(kind, **changes), None, name=kind)


def same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return float((a - b).abs().max()) < 1e-6


def unchanged(ablated: Trace, plain: Trace) -> list[bool]:
    """Which hidden states an ablation leaves as they were."""
    return [same(a, b) for a, b in zip(plain.hidden_states, ablated.hidden_states, strict=True)]


def test_a_module_that_is_called_as_every_layer_is_ablated_in_one() -> None:
    """ALBERT: the n-th call of its one module is layer n."""
    model = opened("albert", num_hidden_layers=3)
    plain, ablated = model.trace(ids=IDS[0]), model.trace(ids=IDS[0], interventions=[regard.ablate(regard.head(1, 2))])
    (path,) = [p for p, m in model.model.named_modules() if type(m).__name__ == "AlbertAttention"]
    with ablating([HeadAblation(layers={(path, 1)}, heads={2})]):
        expected = model.trace(ids=IDS[0])
    assert unchanged(ablated, plain) == [True, True, False, False]
    assert torch.equal(ablated.last_hidden_state, expected.last_hidden_state)
    edge = model.trace(ids=IDS[0], interventions=[regard.ablate(regard.edge(4, 2, layers=[0, 2]))])
    assert [bool(weights[:, 4, 2].any()) for weights in edge.attention] == [False, True, False]


def test_two_calls_a_layer_are_ablated_each() -> None:
    """DiffLlama: attention[n] is the first call of layer n, attention[n, 1] the second."""
    model = opened("diffllama")
    plain = model.trace(ids=IDS[0])
    assert (len(plain.attention), plain.attention.calls) == (2, ((0, 0), (0, 1), (1, 0), (1, 1)))
    ablated = model.trace(ids=IDS[0], interventions=[regard.ablate(regard.edge(4, 2, layers=1))])
    looks = [bool(ablated.attention[call][:, 4, 2].any()) for call in ablated.attention.calls]
    assert looks == [True, True, False, False]
    assert unchanged(ablated, plain) == [True, True, False]
    with pytest.raises(regard.RegardError, match="layer 2 is out of range, diffllama has layers 0 to 1"):
        model.trace(ids=IDS[0], interventions=[regard.ablate(regard.head(2, 0))])


def test_one_of_two_calls_is_ablated() -> None:
    model = opened("diffllama")

    def last(*heads: Head) -> torch.Tensor:
        return model.trace(ids=IDS[0], interventions=[regard.ablate(head) for head in heads]).last_hidden_state

    first, second = regard.head(1, 2, nth=0), regard.head(1, 2, nth=1)
    assert torch.equal(last(first, second), last(regard.head(1, 2)))
    assert not same(last(first), last(second))
    assert not same(last(first), last())
    with pytest.raises(regard.RegardError, match="layer 1 of diffllama has no attention call 2 that could be ablated"):
        last(regard.head(1, 2, nth=2))


def test_chosen_layers_of_two_calls_each() -> None:
    model = opened("diffllama")
    whole, one = model.trace(ids=IDS[0]), model.trace(ids=IDS[0], layers=[1])
    assert one.attention.calls == ((1, 0), (1, 1))
    assert torch.equal(one.attention[1, 1].dense(), whole.attention[1, 1].dense())
    with pytest.raises(regard.RegardError, match=r"attention\[0\] was not kept: of 2 this trace holds 1"):
        one.attention[0]


def test_layers_of_hybrids_keep_their_numbers() -> None:
    types = ["conv", "full_attention", "conv", "full_attention"]
    model = opened("lfm2", num_hidden_layers=4, layer_types=types, num_key_value_heads=2)
    plain, ablated = (
        model.trace(ids=IDS[0]),
        model.trace(ids=IDS[0], interventions=[regard.ablate(regard.edge(4, 2, layers=3))]),
    )
    assert (len(plain.attention), plain.attention.calls) == (4, ((1, 0), (3, 0)))
    assert any("1, 3 (of 4)" in note for note in plain.status.notes)
    assert [bool(ablated.attention[n][:, 4, 2].any()) for n in (1, 3)] == [True, False]
    assert unchanged(ablated, plain) == [True, True, True, True, False]
    with pytest.raises(regard.RegardError, match="layer 4 is out of range, lfm2 has layers 0 to 3"):
        model.trace(ids=IDS[0], interventions=[regard.ablate(regard.head(4, 0))])
    with pytest.raises(regard.RegardError, match="layer 2 of lfm2 has no attention that could be ablated"):
        model.trace(ids=IDS[0], interventions=[regard.ablate(regard.head(2, 0))])
    with pytest.raises(
        regard.RegardError, match=r"attention\[0\] is not there: layer 0 has no such attention; .* 1, 3$"
    ):
        plain.attention[0]
    one = model.trace(ids=IDS[0], layers=[2, 3])
    assert one.attention.calls == ((3, 0),)
    assert torch.equal(one.attention[3].dense(), plain.attention[3].dense())


@pytest.fixture(scope="module", params=["marian", "bart", "t5"])
def pair(request) -> Model:
    return opened(request.param)


def trace(model: Model, *without):
    return model.trace(ids=IDS[0], target_ids=TARGET, interventions=without)


PROJECTIONS = {
    "encoder": ("encoder.layers.1.self_attn.out_proj", "encoder.block.1.layer.0.SelfAttention.o"),
    "decoder": ("decoder.layers.1.self_attn.out_proj", "decoder.block.1.layer.0.SelfAttention.o"),
    "cross": ("decoder.layers.1.encoder_attn.out_proj", "decoder.block.1.layer.1.EncDecAttention.o"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_head_of_each_part_is_what_the_projection_multiplies(pair: Model, part) -> None:
    ablated = trace(pair, regard.ablate(regard.head(1, 2, part=part)))
    projection = pair.model.get_submodule(PROJECTIONS[part][pair.name == "t5"])
    width = projection.weight.shape[1] // 3
    with torch.no_grad():
        kept = projection.weight.clone()
        projection.weight[:, 2 * width :] = 0
        expected = trace(pair)
        projection.weight.copy_(kept)
    for side in ("encoder", "decoder"):
        torch.testing.assert_close(
            getattr(ablated, side).last_hidden_state, getattr(expected, side).last_hidden_state, atol=1e-5, rtol=0
        )
    assert not same(ablated.decoder.last_hidden_state, trace(pair).decoder.last_hidden_state)
    assert any("ablated: head 2 of layer 1 of the" in note for note in ablated.status.notes)


@pytest.mark.parametrize("part", PARTS)
def test_an_edge_is_ablated_in_its_part_alone(pair: Model, part) -> None:
    ablated = trace(
        pair,
        regard.ablate(regard.edge(5, 2, part=part, heads=1)),
        regard.ablate(regard.edge(6, 0, layers=0, part=part)),
    )
    parts = {"encoder": ablated.encoder.attention, "decoder": ablated.decoder.attention, "cross": ablated.decoder.cross}
    for name, maps in parts.items():
        for layer, weights in enumerate(maps):
            gone = [head for head in range(3) if float(weights[head, 5, 2]) == 0]
            assert gone == ([1] if name == part else [])
            assert (float(weights[:, 6, 0].sum()) == 0) == (name == part and layer == 0)


def test_ablations_in_a_batch_of_pairs_are_each_pairs_own(pair: Model) -> None:
    ablations = [
        regard.ablate(regard.edge(3, 4, part="cross")),
        regard.ablate(regard.head(0, 1, part="encoder")),
        regard.ablate(regard.edge(2, 1, part="decoder")),
    ]
    texts, targets = [IDS[0].tolist(), IDS[1, :6].tolist()], [TARGET.tolist(), TARGET[:5].tolist()]
    batched = pair.trace(ids=texts, target_ids=targets, interventions=ablations)
    for both, text, target in zip(batched, texts, targets, strict=True):
        single = pair.trace(ids=text, target_ids=target, interventions=ablations)
        torch.testing.assert_close(both.decoder.last_hidden_state, single.decoder.last_hidden_state, atol=1e-5, rtol=0)
        torch.testing.assert_close(both.encoder.last_hidden_state, single.encoder.last_hidden_state, atol=1e-5, rtol=0)


def test_words_are_of_the_side_that_they_are_read_on(pair: Model) -> None:
    with pytest.raises(regard.RegardError, match="token 8 is out of range, the text has tokens 0 to 6"):
        trace(pair, regard.ablate(regard.edge(8, 2, part="cross")))
    assert trace(pair, regard.ablate(regard.edge(2, 8, part="cross"))).decoder.cross[0][:, 2, 8].sum() == 0
    with pytest.raises(regard.RegardError, match="token 8 is out of range, the text has tokens 0 to 6"):
        trace(pair, regard.ablate(regard.edge(2, 8, part="decoder")))
    with pytest.raises(regard.RegardError, match="token 11 is out of range, the text has tokens 0 to 10"):
        trace(pair, regard.ablate(regard.edge(2, 11, part="encoder")))


def test_what_an_encoder_decoder_refuses(pair: Model) -> None:
    for ablated, says in (
        (
            regard.ablate(regard.head(0, 1)),
            "choose the attention, one of part='encoder', part='decoder', part='cross'",
        ),
        (regard.ablate(regard.edge(2, 1)), "is an encoder-decoder: choose the attention"),
        (
            regard.ablate(regard.head(2, 1, part="cross")),
            "layer 2 is out of range, .* has layers 0 to 1 of the cross-attention",
        ),
        (
            regard.ablate(regard.edge(2, 1, layers=[0, 7], part="encoder")),
            "layer 7 is out of range, .* 0 to 1 of the encoder",
        ),
        (regard.ablate(regard.head(1, 3, part="decoder")), "head 3 is out of range, .* has heads 0 to 2"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            trace(pair, ablated)


def test_a_part_of_a_model_that_has_none_is_refused() -> None:
    with pytest.raises(regard.RegardError, match="bert is not an encoder-decoder: leave out part='cross'"):
        opened("bert").trace(ids=IDS[0], interventions=[regard.ablate(regard.head(0, 1, part="cross"))])


def test_a_call_that_is_known_too_late_to_cross_is_refused(monkeypatch) -> None:
    """What was counted as the decoder's own attention turns out to be cross-attention: another call was ablated."""
    known, right = [], names.CallNumbering._part

    def late(self: names.CallNumbering, path: str) -> tuple[bool, names.Part | None]:
        shown, part = right(self, path)
        if part == "cross":
            known.append(path)
            part = "cross" if len(known) > 2 else "decoder"
        return shown, part

    monkeypatch.setattr(names.CallNumbering, "_part", late)
    with pytest.raises(regard.RegardError, match="of marian make which layer was known only after they were made"):
        trace(opened("marian"), regard.ablate(regard.head(0, 1, part="decoder")))


def test_keys_that_are_no_tokens_have_no_edges() -> None:
    model = make_model("bert")
    watch = Capture(ModuleIndex(model))

    def run(change: CallChange, length: int) -> None:
        numbering = names.CallNumbering(model, watch, pairs=False)
        with (
            torch.no_grad(),
            applied([change], numbering, watch, [length], "bert"),
            record() as watch.calls,
            record_layers(model, watch),
            through_interface(model, watch),
        ):
            model(IDS)

    head = CallChange(None, (1,), HeadAblation(heads=(2,), batch=(0,)))
    edge = CallChange(None, None, EdgeAblation(queries=(0,), keys=(0,), batch=(0,)))
    for change, length in ((head, 11), (head, 10), (edge, 11)):
        run(change, length)
    with pytest.raises(regard.RegardError, match="layer 0 of bert attends to 11 keys for 10 tokens"):
        run(edge, 10)
