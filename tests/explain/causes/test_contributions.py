"""The parts of a vector: by hand, against the long way round, and adding up in every family that is verified."""

import math
from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.causes import contributions as module
from regard.explain.causes.contributions import contributions, rollout, split
from regard.models.model import Model
from regard.trace.attention_output import AttentionOutput, Norm
from tests.support.attention_outputs import make_model, traced

IDS = torch.randint(1, 101, (2, 13), generator=torch.Generator().manual_seed(1))

FAMILIES = [
    ("bert", {}),
    ("distilbert", {}),
    ("albert", {}),
    ("electra", {}),
    ("opt", {"ffn_dim": 37, "word_embed_proj_dim": 24, "do_layer_norm_before": False}),
    ("gpt2", {}),
    ("llama", {"num_key_value_heads": 2}),
    ("llama", {"num_key_value_heads": 3, "head_dim": 8}),  # heads wider together than the model
    ("qwen3", {"num_key_value_heads": 1, "head_dim": 6}),
    ("modernbert", {}),
    ("opt", {"ffn_dim": 37, "word_embed_proj_dim": 24}),
    ("gemma2", {"num_key_value_heads": 2, "head_dim": 6}),  # an RMS norm between the projection and the residual
    ("olmo2", {}),
    ("granite", {"residual_multiplier": 0.3}),
    ("phi", {}),  # parallel
]


def long_way(weights, values, block: AttentionOutput, row: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """(parts (H, S, M), residual, bias) of one row, written out vector by vector in float64."""
    weights, values, out = weights.double(), values.double(), block.weight.double()
    heads, width = weights.shape[0], values.shape[2]
    x = (block.residual[row] + block.projected[row]).double()
    deviation = math.sqrt(float(((x - x.mean()) ** 2).mean()) + block.norm.eps) if block.norm else 1.0

    def seen(vector: torch.Tensor) -> torch.Tensor:
        return (vector - vector.mean()) / deviation * block.norm.weight.double() if block.norm else vector

    factor = block.scaling.scale[row].double() * block.scaling.gain.double() if block.scaling else 1.0

    parts = torch.zeros(heads, weights.shape[2], out.shape[0], dtype=torch.float64)
    for head in range(heads):
        slice_of_out = out[:, head * width : (head + 1) * width]  # (M, E)
        for source in range(weights.shape[2]):
            value = values[head // (heads // values.shape[0]), source]
            parts[head, source] = seen(factor * float(weights[head, row, source]) * (slice_of_out @ value))
    none = torch.zeros(out.shape[0], dtype=torch.float64)
    bias = none if block.bias is None else seen(factor * block.bias.double())
    return parts, seen(block.residual[row].double()), bias + (block.norm.bias.double() if block.norm else 0)


@pytest.mark.parametrize(("kind", "changes"), FAMILIES)
def test_parts_are_those_of_the_long_way_and_add_up(kind: str, changes: dict) -> None:
    trace = traced(make_model(kind, **changes), IDS, 1)
    for layer in (0, 1):
        weights, block = trace.attention[layer].dense(), trace.attention_outputs[layer]
        for row in (0, 5, 12):
            made = contributions(trace, row, layer)
            parts, residual, bias = long_way(weights, trace.values[layer], block, row)
            size = float(made.vector.norm())
            close = {"atol": 2e-6 * size, "rtol": 0}  # maps give a region's weights to fp32 rounding
            torch.testing.assert_close(made.norms, parts.norm(dim=-1), **close)
            torch.testing.assert_close(made.sources(), parts.sum(0), **close)
            torch.testing.assert_close(made.heads(), parts.sum(1), **close)
            torch.testing.assert_close(made.part(2, 4), parts[2, 4], **close)
            torch.testing.assert_close(made.residual, residual, **close)
            torch.testing.assert_close(made.bias, bias, **close)
            along = parts @ made.vector / made.vector.dot(made.vector)
            torch.testing.assert_close(made.shares, along, atol=2e-6, rtol=0)
            total = made.heads().sum(0) + made.residual + made.bias
            assert float((total - made.vector).norm()) <= 1e-5 * size
            assert math.isclose(float(made.shares.sum()) + made.residual_share + made.bias_share, 1, abs_tol=1e-5)
            assert made.error <= 1e-5


@pytest.mark.parametrize("kind", ["marian", "bart", "t5"])
def test_cross_attention_is_split_into_the_encoders_tokens(kind: str) -> None:
    pair = Model(make_model(kind), None, name=kind).trace(ids=IDS[0, :11].tolist(), target_ids=IDS[1, :7].tolist())
    decoder = pair.decoder
    for layer in (0, 1):
        made = contributions(decoder, 5, layer, part="cross")
        weights, block = decoder.cross[layer].dense(), decoder.cross_attention_outputs[layer]
        parts, residual, bias = long_way(weights, decoder.cross_values[layer], block, 5)
        close = {"atol": 2e-6 * float(made.vector.norm()), "rtol": 0}
        assert made.norms.shape == (3, 11)
        torch.testing.assert_close(made.norms, parts.norm(dim=-1), **close)
        torch.testing.assert_close(made.heads(), parts.sum(1), **close)
        torch.testing.assert_close(made.residual, residual, **close)
        torch.testing.assert_close(made.bias, bias, **close)
    with pytest.raises(regard.RegardError, match="has no cross-attention here"):
        contributions(pair.encoder, 5, 0, part="cross")


def test_every_word_of_the_default_model(minilm) -> None:
    from transformers import AutoModel

    from regard.model_files.folder import default_folder
    from tests.support import RIVER

    model = AutoModel.from_pretrained(default_folder(), dtype=torch.float32).eval()
    ids = torch.tensor([minilm.tokenizer(RIVER)["input_ids"]])
    kept: list[torch.Tensor] = []
    handles = [
        layer.attention.output.register_forward_hook(lambda _m, _a, out: kept.append(out[0].clone()))
        for layer in model.encoder.layer
    ]
    trace = traced(model, ids)
    for handle in handles:
        handle.remove()
    worst = 0.0
    for layer in range(6):
        for token in range(ids.shape[1]):
            made = contributions(trace, token, layer)
            torch.testing.assert_close(made.vector, kept[layer][token].double(), atol=1e-6, rtol=0)
            worst = max(worst, made.error)
    assert worst < 5e-6


def test_a_word_is_the_mean_of_its_tokens() -> None:
    trace = traced(make_model("bert"), IDS)
    word = regard.text.words.Word("w03 w04 w05", 12, 23, (3, 4, 5))
    whole, each = contributions(trace, word, 1), [contributions(trace, n, 1) for n in word.tokens]
    for name in ("vector", "residual", "bias"):
        torch.testing.assert_close(getattr(whole, name), sum(getattr(one, name) for one in each) / 3)
    torch.testing.assert_close(whole.sources(), sum(one.sources() for one in each) / 3, atol=1e-7, rtol=0)
    assert torch.equal(contributions(trace, "w03", 1).vector, each[0].vector)


def test_a_split_by_hand() -> None:
    """Two heads of width 1 over one value head, M = 2: every number can be read."""
    weights = torch.tensor([[[0.25, 0.75]], [[1.0, 0.0]]])  # (H, 1, S)
    values = torch.tensor([[[4.0], [8.0]]])  # (G, S, E)
    out = torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    block = AttentionOutput(
        "pre-norm", out, torch.tensor([1.0, -1.0]), torch.tensor([[2.0, 3.0]]), torch.tensor([[8.0, 7.0]])
    )
    (made,) = split(weights, values, block, [[0]])
    assert made.norms.tolist() == [[1.0, 6.0], [8.0, 0.0]]
    assert made.heads().tolist() == [[7.0, 0.0], [0.0, 8.0]]
    assert made.sources().tolist() == [[1.0, 8.0], [6.0, 0.0]]
    assert made.vector.tolist() == [10.0, 10.0]
    torch.testing.assert_close(made.shares, torch.tensor([[0.05, 0.3], [0.4, 0.0]], dtype=torch.float64))
    assert math.isclose(made.residual_share, 0.25)
    assert math.isclose(made.bias_share, 0.0)
    assert made.error == 0
    # Behind a norm: mean 10, both components equal, so deviation is sqrt(eps); the difference is what is left.
    (behind,) = split(weights, values, replace(block, kind="post-norm", norm=Norm(None, None, 4.0)), [[0]])
    assert behind.heads().tolist() == [[1.75, -1.75], [-2.0, 2.0]]
    assert behind.residual.tolist() == [-0.25, 0.25]
    assert behind.bias.tolist() == [0.5, -0.5]
    assert behind.vector.tolist() == [0.0, 0.0]


def test_parts_that_do_not_add_up_are_refused_with_the_figure() -> None:
    trace = traced(make_model("llama", num_key_value_heads=2), IDS)
    block = trace.attention_outputs[1]
    trace.attention_outputs = (
        trace.attention_outputs[0],
        replace(block, weight=block.weight.roll(4, 1)),
    )  # heads confused
    contributions(trace, 5, 0)
    with pytest.raises(regard.RegardError, match=r"layer 1 of llama: the parts' sum differs .* by \d\.\de[+-]\d\d of"):
        contributions(trace, 5, 1)
    # A residual a million times as long does not hide it.
    trace.attention_outputs = (
        trace.attention_outputs[0],
        replace(trace.attention_outputs[1], residual=block.residual * 1e6),
    )
    with pytest.raises(regard.RegardError, match="the parts' sum differs"):
        contributions(trace, 5, 1)


def test_a_norm_of_another_size_than_the_models_is_refused() -> None:
    trace = traced(make_model("olmo2"), IDS)
    contributions(trace, 5, 0)
    (block, _) = trace.attention_outputs
    trace.attention_outputs = (replace(block, scaling=replace(block.scaling, gain=block.scaling.gain * 1.001)), block)
    with pytest.raises(regard.RegardError, match="the parts' sum differs"):
        contributions(trace, 5, 0)


def test_half_precision_is_refused_as_what_it_is() -> None:
    trace = traced(make_model("bert", torch.bfloat16), IDS)
    with pytest.raises(regard.RegardError, match=r"allowed is 1e-05 \(the model computes in bfloat16\)"):
        contributions(trace, 5, 0)


def test_a_shape_that_was_not_verified_is_refused_by_name() -> None:
    trace = traced(make_model("diffllama"), IDS)
    with pytest.raises(
        regard.RegardError, match="layer 1 of diffllama: no exact split .* DiffLlamaAttention: 'cat' is"
    ):
        contributions(trace, 5, 1)


def test_what_is_not_there_is_named() -> None:
    trace = traced(make_model("bert"), IDS)
    for place, layer, says in (
        (5, 2, "layer 2 is out of range: bert has layers 0 to 1"),
        (13, 0, "token 13 is out of range: the text has tokens 0 to 12"),
        ("w99", 0, "word 'w99' is not in the text"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            contributions(trace, place, layer)
    with pytest.raises(regard.RegardError, match="has no cross-attention"):
        contributions(trace, 0, 0, part="cross")
    for part in ("encoder", "decoder"):
        with pytest.raises(regard.RegardError, match=f"contributions: part: got '{part}', expected 'cross', or None"):
            contributions(trace, 0, 0, part=part)  # type: ignore[arg-type]
    trace.text = trace.text.replace("w07", "w03")
    with pytest.raises(regard.RegardError, match=r"'w03' occurs 2 times \(at characters 12, 28\): pass "):
        contributions(trace, "w03", 0)
    trace.attention_outputs = ()
    with pytest.raises(regard.RegardError, match="doesn't contain its output projection"):
        contributions(trace, 0, 0)


ROLLOUT_IDS = torch.randint(1, 101, (2, 13), generator=torch.Generator().manual_seed(2))


def whole(maps) -> torch.Tensor:
    """The product of all layers as Abnar & Zuidema write it: n × n matrices, layer by layer."""
    product = torch.eye(maps[0].shape[1], dtype=torch.float64)
    for weights in maps:
        layer = weights.dense().double().mean(0)
        product = (0.5 * layer + 0.5 * torch.eye(len(layer))) @ product
    return product


@pytest.fixture(params=["bert", "llama"])
def trace(request):
    return traced(make_model(request.param, num_key_value_heads=2, num_hidden_layers=5), ROLLOUT_IDS)


@pytest.mark.parametrize("band", [1, 6 * 13 * 4, 1 << 22])
def test_rows_are_those_of_the_whole_product(trace, monkeypatch, band: int) -> None:
    monkeypatch.setattr(module, "BAND", band)
    torch.testing.assert_close(rollout(trace), whole(trace.attention), atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace, [7, 2]), whole(trace.attention)[[7, 2]], atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace, [7], layer=2), whole(trace.attention[:3])[[7]], atol=1e-6, rtol=0)
    torch.testing.assert_close(rollout(trace).sum(1), torch.ones(13, dtype=torch.float64))


def test_rollout_of_a_word_is_the_mean_of_its_tokens(trace) -> None:
    word = regard.text.words.Word("w03 w04", 12, 19, (3, 4))
    torch.testing.assert_close(rollout(trace, [word])[0], rollout(trace, [3, 4]).mean(0))
    torch.testing.assert_close(rollout(trace, ["w03"]), rollout(trace, [3]))


def test_never_more_than_a_band_of_one_layer(trace, monkeypatch) -> None:
    """Every region that is read is a band of rows."""
    read = []
    original = regard.AttentionMap.__getitem__
    monkeypatch.setattr(regard.AttentionMap, "__getitem__", lambda self, at: read.append(at) or original(self, at))
    monkeypatch.setattr(module, "BAND", 6 * 13 * 4)
    rollout(trace, [12])
    assert max(len(at[1]) for at in read) <= 4
    assert len(read[0][1]) == 1  # of the last layer only the asked row


def test_what_rollout_lacks_is_named(trace) -> None:
    with pytest.raises(regard.RegardError, match="layer 5 is out of range"):
        rollout(trace, layer=5)
    with pytest.raises(regard.RegardError, match="token 13 is out of range"):
        rollout(trace, [13])
    trace.attention = (trace.attention[0].crop(0, slice(0, 13), slice(0, 9)), *trace.attention[1:])
    with pytest.raises(regard.RegardError, match="layer 0 is 13 × 9 for 13 tokens"):
        rollout(trace)
