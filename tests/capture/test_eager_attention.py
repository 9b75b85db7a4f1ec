"""Families whose attention is code of their own, against what they report themselves when they are asked directly."""

import copy
import re
from typing import Any

import pytest
import torch
import transformers

import regard
from regard.attention.attention_map import AttentionMap
from regard.capture import eager_attention
from regard.capture.interventions.names import ablate, head
from regard.explain.causes.contributions import contributions
from regard.models.model import Model

IDS, OTHER = [5, 17, 3, 60, 41, 9, 2], [8, 30, 12]
SMALL = {"vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BERT = {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 37,
        "max_position_embeddings": 31}  # fmt: skip
OWN: dict[str, dict[str, Any]] = {
    "bloom": {"hidden_size": 24, "n_layer": 2, "n_head": 3},
    "falcon": {"hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 3},
    "codegen": {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 31, "rotary_dim": 4, "n_inner": 37},
    "gptj": {"n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 31, "rotary_dim": 4},
    "gpt_neo": {"hidden_size": 24, "num_layers": 2, "num_heads": 3, "max_position_embeddings": 31, "window_size": 3,
                "attention_types": [[["global", "local"], 1]]},
    "deberta-v2": BERT | {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "mpnet": BERT,
    "xlm": {"emb_dim": 24, "n_layers": 2, "n_heads": 3, "max_position_embeddings": 31, "n_words": 97},
    "xlnet": {"d_model": 24, "n_layer": 2, "n_head": 3, "d_inner": 37},
}  # fmt: skip


def tiny(kind: str, language: bool = False, **changes: Any) -> Any:
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **(SMALL | OWN.get(kind, {}) | changes))
    auto = transformers.AutoModelForCausalLM if language else transformers.AutoModel
    return auto.from_config(config).eval()


def told(model: Any, ids: list[int], **more: Any) -> Any:
    """What a copy of the model that was made eager from the start says of itself, and a plain pass of the model."""
    twin = type(model)._from_config(copy.deepcopy(model.config), attn_implementation="eager").eval()
    twin.load_state_dict(model.state_dict())
    with torch.no_grad():
        plain = model(torch.tensor([ids]), **more)
        return twin(torch.tensor([ids]), output_attentions=True, output_hidden_states=True, **more), plain


def close(a: torch.Tensor, b: torch.Tensor, atol: float = 1e-6) -> None:
    torch.testing.assert_close(a, b, atol=atol, rtol=0)


@pytest.mark.parametrize("kind", OWN)  # Falcon's plain pass is PyTorch's kernel; the others know nothing but eager
def test_is_what_the_family_itself_reports(kind: str) -> None:
    model = tiny(kind)
    one, other = Model(model, None, name=kind).trace(ids=[IDS, OTHER])
    for trace, ids in ((one, IDS), (other, OTHER)):  # of two texts each is as it is alone
        expected, plain = told(model, ids)
        assert len(trace.attention) == len(expected.attentions) == 2
        for ours, theirs in zip(trace.attention, expected.attentions, strict=True):
            assert ours.shape == (4 if kind == "codegen" else 3, len(ids), len(ids))
            close(ours.dense(), theirs[0])
        for n in range(2):
            close(trace.hidden_states[n], expected.hidden_states[n][0])
        close(trace.last_hidden_state, plain.last_hidden_state[0], 1e-5)
    assert one.status.kernels == ("the family's own eager attention",)
    assert one.status.difference < 1e-6
    assert eager_attention.NOTE in one.status.notes


def test_logits_and_the_setting_of_the_model() -> None:
    model = tiny("falcon", language=True)
    before = model.config._attn_implementation
    trace = Model(model, None, name="falcon").trace(ids=IDS)
    assert model.config._attn_implementation == before == "sdpa"
    close(trace.logits, told(model, IDS)[1].logits[0], 1e-5)


def test_the_map_does_what_a_map_does(tmp_path: Any) -> None:
    trace = Model(tiny("gpt_neo"), None, name="neo").trace(ids=IDS)
    weights, dense = trace.attention[1], trace.attention[1].dense()  # a window of 3: zeros far back and ahead
    assert dense[0, 6].count_nonzero() == 3
    close(weights[1, 2:5, :3], dense[1, 2:5, :3])
    close(dense.sum(-1), torch.ones(3, 7))
    values, keys = weights.top(4)
    assert keys[0, 6].tolist()[3] == -1  # a key of no weight is none
    close(values[0, 6, :3].sort().values, dense[0, 6, 4:].sort().values)
    close(weights.entropy(), torch.special.entr(dense).sum(-1))
    close(weights.received(), dense.sum(1))
    places = torch.arange(7.0)
    close(weights.distance(), (dense * (places[:, None] - places).abs()).sum(-1), 1e-5)
    close(weights.pooled(7, 7), dense)
    close(weights.statistics(top=2, pooled=(3, 2)).received, dense.sum(1))
    assert weights.scores[0, 0, 5] == -torch.inf
    trace.save(tmp_path / "own.safetensors")
    opened = regard.open(tmp_path / "own.safetensors")
    assert isinstance(opened.attention[1], AttentionMap)
    assert torch.equal(opened.attention[1].dense(), dense)


def test_a_pair() -> None:
    sizes = {"d_model": 24, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 3,
             "decoder_attention_heads": 3, "encoder_ffn_dim": 37, "decoder_ffn_dim": 37,
             "max_position_embeddings": 31, "decoder_start_token_id": 0}  # fmt: skip
    model = tiny("mvp", **sizes)
    pair = Model(model, None, name="mvp").trace(ids=IDS, target_ids=OTHER)
    expected, plain = told(model, IDS, decoder_input_ids=torch.tensor([OTHER]))
    for ours, theirs in (
        (pair.encoder.attention, expected.encoder_attentions),
        (pair.decoder.attention, expected.decoder_attentions),
        (pair.decoder.cross, expected.cross_attentions),
    ):
        for mine, own in zip(ours, theirs, strict=True):
            close(mine.dense(), own[0])
    assert [each.shape for each in pair.decoder.cross] == [(3, 3, 7)] * 3
    close(pair.decoder.last_hidden_state, plain.last_hidden_state[0], 1e-5)
    with pytest.raises(ValueError, match="cross-attention"):
        pair.decoder.cross[0].distance()


CHANGED = [*IDS[:3], 50, *IDS[4:]]
SPREAD = ("xlm", "xlnet")  # their layers give no states, one module after another


@pytest.mark.parametrize("kind", [kind for kind in OWN if kind not in SPREAD])
def test_states_can_be_patched_and_steered(kind: str) -> None:
    """What touches no attention, against the family's own modules with hooks of one's own."""
    model = tiny(kind)
    opened = Model(model, None, name=kind)
    plain, other = opened.trace(ids=IDS), opened.trace(ids=CHANGED)
    for layer in ("input", 0, 1):  # all positions: from there on it is the other run
        found = opened.trace(ids=IDS, interventions=[regard.patch("hidden_states", layer=layer, source=other)])
        assert torch.equal(found.last_hidden_state, other.last_hidden_state)
        assert [torch.equal(*each) for each in zip(found.hidden_states, other.hidden_states, strict=True)] == (
            [n > (-1 if layer == "input" else layer) for n in range(3)]
        )
    (path, _), *_ = opened._session.structure.stacks(opened._reader.read("text", None, [IDS])[1][0], None)
    layers, vector = model.get_submodule(path), torch.linspace(-1, 1, 24)

    def added(_module: Any, _args: Any, output: Any) -> Any:
        states = (output if isinstance(output, torch.Tensor) else output[0]).clone()
        states[:, 2] += vector
        return states if isinstance(output, torch.Tensor) else (states, *output[1:])

    with layers[0].register_forward_hook(added):
        expected, by_hand = told(model, IDS)[1], model(torch.tensor([IDS]))
    assert torch.equal(expected.last_hidden_state, by_hand.last_hidden_state)
    steered = opened.trace(ids=IDS, interventions=[regard.steer(vector, layer=0, at=2)])
    close(steered.last_hidden_state, by_hand.last_hidden_state[0].detach(), 1e-5)
    close(steered.hidden_states[1][2], plain.hidden_states[1][2] + vector)
    assert any(note.startswith("steered") for note in steered.status.notes)
    for source, same in ((plain, True), (other, False)):
        patched = opened.trace(ids=IDS, interventions=[regard.patch("feed_forward", layer=1, source=source)])
        assert torch.equal(patched.last_hidden_state, plain.last_hidden_state) == same
    zero = opened.trace(ids=IDS, interventions=[regard.patch("feed_forward", layer=1, source="zero")])
    assert not torch.equal(zero.last_hidden_state, plain.last_hidden_state)


@pytest.mark.parametrize("kind", SPREAD)
def test_states_of_no_list_of_layers_are_refused(kind: str) -> None:
    opened = Model(tiny(kind), None, name=kind)
    for change in (regard.steer(torch.ones(24), layer=0), regard.patch("feed_forward", layer=0, source="zero")):
        with pytest.raises(regard.RegardError, match=f"no modules of one list give the states between the 2 .* {kind}"):
            opened.trace(ids=IDS, interventions=[change])


def test_refused_by_name() -> None:
    bloom = Model(tiny("bloom"), None, name="tiny-bloom")
    says = (
        "interventions: its attention does not go .* no head, edge or attention of tiny-bloom can be ablated or patch"
    )
    for change in (ablate(head(0, 1)), regard.patch("values", layer=0, source="zero")):
        with pytest.raises(regard.RegardError, match=says):
            bloom.trace(ids=IDS, interventions=[change])
    with pytest.raises(regard.RegardError, match="does not go through the attention interface"):
        contributions(bloom.trace(ids=IDS), 2, layer=0)
    for kind, sizes, says in (
        ("longformer", BERT | {"attention_window": 4}, r"attentions\[0\] have shape .*, expected 7 queries and 7 keys"),
        ("squeezebert", BERT | {"embedding_size": 24}, r"attentions\[0\] aren't distributions over the tokens"),
        ("yoso", BERT, r"attentions\[0\] aren't weights \(B, H, L, S\)"),
        ("fnet", BERT, "it reports no weights"),
    ):
        if kind == "squeezebert":
            sizes = {**sizes, "num_attention_heads": 4, "intermediate_size": 48}
        model = Model(tiny(kind, **sizes), None, name=kind)
        with pytest.raises(regard.RegardError, match=f"model '{kind}': .*{says}"):
            model.trace(ids=IDS)


class Changed(torch.nn.Module):
    """What a module gives, changed by a function that is also told how it was called."""

    def __init__(self, own: torch.nn.Module, change: Any) -> None:
        super().__init__()
        self.own, self.change = own, change

    def forward(self, *args: Any, **options: Any) -> Any:
        return self.change(*self.own(*args, **options), asked=options.get("output_attentions"))


def other_weights(output: Any, *weights: Any, asked: Any) -> Any:
    return output, *(each.flip(1) for each in weights)


def other_result(output: Any, *rest: Any, asked: Any) -> Any:
    return output.flip(-1) if asked else output, *rest


def test_falcon_with_alibi(tmp_path: Any) -> None:
    """Its eager attention adds its biases twice, PyTorch's kernel once: shown where the model itself runs eagerly."""
    tiny("falcon", language=True, alibi=True).save_pretrained(tmp_path)
    opened = regard.load(tmp_path)
    with pytest.raises(regard.RegardError, match="its result changes by .* from the 'sdpa' it runs with") as refusal:
        opened.trace(ids=IDS)
    assert opened.model.config._attn_implementation == "sdpa"
    (way,) = re.findall(r"from_pretrained\(\.\.\., (\w+)='(\w+)'\)", str(refusal.value))  # what it says works:
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path, **dict([way]))
    trace = regard.load(model).trace(ids=IDS)
    expected, plain = told(model, IDS)
    close(trace.attention[1].dense(), expected.attentions[1][0])
    close(trace.logits, plain.logits[0], 1e-5)


def test_weights_that_are_in_no_product_are_refused() -> None:
    model = tiny("mpnet")
    layer = model.encoder.layer[1].attention
    layer.attn = Changed(layer.attn, other_weights)
    with pytest.raises(regard.RegardError, match=r"attentions\[1\] are in no product of its forward pass"):
        Model(model, None, name="lying").trace(ids=IDS)


def test_a_result_that_changes_when_weights_are_asked_for_is_refused() -> None:
    model = tiny("bloom")
    model.h[1] = Changed(model.h[1], other_result)
    with pytest.raises(regard.RegardError, match="its result changes by"):
        Model(model, None, name="swayed").trace(ids=IDS)


def test_a_token_that_the_model_adds_by_itself_is_refused() -> None:
    """Cropped to the text, the weights on its own tokens would be shared out silently."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 97, "max_position_embeddings": 31, "pad_token_id": 0}
    config = transformers.VideoPrismTextConfig(**{**BERT, **sizes})
    model = transformers.VideoPrismTextModel(config).eval()
    with pytest.raises(regard.RegardError, match="have 8 tokens where 7 were given"):
        Model(model, None, name="prism").trace(ids=IDS)
