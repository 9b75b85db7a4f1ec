from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.causes.contributions import adds_up, contribution_norms
from regard.explain.weights.head_scores import head_scores
from regard.models.model import Model
from regard.trace.attention_output import AttentionOutput, Scaling, UnverifiedOutput
from regard.trace.trace import PairTrace, Trace
from regard.web.add_traces import add_pair, add_trace, refusal, steps_data
from regard.web.html_file import write_page
from regard.web.numbers import NumberStore
from regard.web.page import Page
from tests.capture.test_families import DECODERS, IDS, PAIRS, TARGET, tiny
from tests.support.own_models import KINDS, TEXTS, opened
from tests.support.web_pages import Read, check_call, check_page, stored

pytestmark = pytest.mark.usefixtures("stand_in")


def test_the_numbers_lead_to_what_the_model_computed(minilm: Any) -> None:
    """Weights, values, W_O, bias, residual and norm of the page give the layer's own attention output."""
    trace, numbers = minilm.trace("A man is fishing on a river bank."), NumberStore()
    weights, values, output = trace.attention[1], trace.values[1], trace.attention_outputs[1]
    data: Any = steps_data(7, weights, values, output, trace.hidden_states[1], numbers)
    assert (data["call"], data["refused"], data["projection_scale"]) == (7, None, 1.0)
    read = stored(numbers)
    dense, bias = weights.dense().double().numpy(), read.numbers(data["projection_bias"])
    assert data["projection"] is None  # of few tokens each key's part is smaller
    projected = np.einsum("hls,hsm->lm", dense, read.vectors(data["projected"])) + bias
    many: Any = steps_data(7, weights, values, output, trace.hidden_states[1], numbers, tokens=64)
    assert many["projected"] is None
    assert many["value"]["values"]["at"] == data["value"]["values"]["at"]  # what is there is not carried twice
    read = stored(numbers)
    context = np.einsum("hls,hse->lhe", dense, read.vectors(data["value"])).reshape(len(trace.tokens), -1)
    own = output.projected.double().numpy()
    of_parts, of_contexts = (
        (abs(found - own).max(1) / abs(own).max(1)).max()
        for found in (projected, context @ read.numbers(many["projection"]).T + bias)
    )
    assert of_parts < 5e-5
    assert of_parts < 2 * of_contexts  # as exact as W_O in float32, times values in int16
    total = read.vectors(data["residual"]) + projected
    norm = data["norm"]
    assert norm["kind"] == "layer norm"
    centred = total - total.mean(1, keepdims=True)
    normed = centred / np.sqrt((centred**2).mean(1, keepdims=True) + norm["epsilon"])
    normed = normed * read.numbers(norm["weight"]) + read.numbers(norm["bias"])
    own = torch.nn.functional.layer_norm(
        output.residual + output.added, (384,), output.norm.weight, output.norm.bias, output.norm.eps
    )
    assert abs(normed - own.double().numpy()).max() < 5e-3
    entering = read.vectors(data["entering"])
    assert abs(entering - trace.hidden_states[1].double().numpy()).max() < 1e-3


def test_what_cannot_be_carried_is_said(minilm: Any) -> None:
    trace = minilm.trace("A man is fishing.")
    weights, values, output = trace.attention[1], trace.values[1], trace.attention_outputs[1]
    assert isinstance(output, AttentionOutput)
    assert refusal(weights, values, output) is None
    wrong = replace(output, weight=1.1 * output.weight)
    assert refusal(weights, values, wrong) == "the heads' parts do not add up to what the model computed"
    assert refusal(weights, values, UnverifiedOutput("a gate")) == "a gate"
    assert "trace with attention_outputs=True" in str(refusal(weights, values, None))
    scale = torch.rand(len(trace.tokens), 1)
    scaling = Scaling(scale, torch.ones(384), scale * output.projected)
    assert "by a different factor for each token" in str(refusal(weights, values, replace(output, scaling=scaling)))
    numbers = NumberStore()
    data = steps_data(0, weights, values, wrong, None, numbers)
    assert [data[name] for name in ("projection", "projected", "residual", "norm", "entering")] == [None] * 5
    assert len(numbers.blobs) == 2  # the values are there all the same


def test_weight_times_norm_is_the_length_of_what_a_key_gave(minilm: Any) -> None:
    trace = minilm.trace("A man is fishing on a river bank.")
    weights, values, output = trace.attention[2], trace.values[2], trace.attention_outputs[2]
    assert isinstance(output, AttentionOutput)
    norms = contribution_norms(weights, values, output)
    assert norms is not None
    projection = output.weight.view(len(output.weight), 12, -1)
    for head, key in ((0, 0), (5, 3), (11, 9)):
        given = weights[head, 4, key] * (projection[:, head] @ values[head, key])
        torch.testing.assert_close(weights[head, 4, key] * norms[head, key], given.norm(), rtol=1e-3, atol=1e-9)


def test_parts_that_do_not_add_up_have_no_norms(minilm: Any) -> None:
    trace = minilm.trace("A man is fishing.")
    weights, values, output = trace.attention[2], trace.values[2], trace.attention_outputs[2]
    assert isinstance(output, AttentionOutput)
    assert adds_up(weights, values, output)
    wrong = replace(output, weight=1.01 * output.weight)
    assert not adds_up(weights, values, wrong)
    assert contribution_norms(weights, values, wrong) is None


def test_query_heads_that_share_a_value_head_project_it_each_by_their_own_slice() -> None:
    trace = opened("llama").trace("A man is fishing")
    output = trace.attention_outputs[1]
    assert isinstance(output, AttentionOutput)
    values = trace.values[1]
    assert values is not None
    norms = contribution_norms(trace.attention[1], values, output)
    assert norms is not None
    projection = output.weight.view(len(output.weight), 3, -1)
    expected = torch.stack([(values[0] @ projection[:, head].T).norm(dim=1) for head in range(3)])
    torch.testing.assert_close(norms, expected, rtol=1e-3, atol=1e-7)


def written(folder: Path, traces: list[Trace] | PairTrace, page: Page | None = None) -> Read:
    page = page or Page("a title")
    if isinstance(traces, PairTrace):
        add_pair(page, traces, "source", "target")
    else:
        for n, trace in enumerate(traces):
            add_trace(page, trace, f"text {n + 1}")
    write_page(page, folder / "page.html")
    return Read(folder / "page.html")


@pytest.mark.parametrize("kind", PAIRS)
def test_encoder_decoders(kind: str, tmp_path: Path) -> None:
    pair = Model(tiny(kind, PAIRS[kind]), None, name=kind).trace(ids=IDS, target_ids=TARGET)
    assert isinstance(pair, PairTrace)
    page = written(tmp_path, pair)
    check_page(page, pair.sides)
    calls = page.data["calls"]
    assert [call["name"] for call in calls] == [
        *(f"layer {n}, encoder" for n in range(2)),
        *(f"layer {n}, decoder" for n in range(3)),
        *(f"layer {n}, cross" for n in range(3)),
    ]
    assert {(call["part"], call["queries"], call["keys"]) for call in calls} == {
        ("self", 0, 0),
        ("self", 1, 1),
        ("cross", 1, 0),
    }
    assert (calls[0]["bias"] is not None) == (kind == "t5")
    if kind == "t5":
        assert calls[0]["bias"]["kind"] == "offsets"


@pytest.mark.parametrize("kind", DECODERS)
def test_decoders(kind: str, tmp_path: Path) -> None:
    traces = Model(tiny(kind, DECODERS[kind], language=True), None, name=kind).trace(ids=[IDS, IDS[:4]])
    assert isinstance(traces, list)
    page = written(tmp_path, traces)
    check_page(page, traces)  # the second was padded in its batch
    call = page.data["calls"][0]
    assert (call["sinks"] is not None) == (kind == "gpt_oss")
    assert call["softcap"] == (2.0 if kind == "gemma2" else None)


@pytest.mark.parametrize("kind", KINDS)
def test_our_own(kind: str, tmp_path: Path) -> None:
    traces = opened(kind).trace(TEXTS)
    page = written(tmp_path, traces)
    check_page(page, traces)
    assert (page.data["calls"][0]["bias"] is not None) == (kind == "alibi")
    assert [text["text"] for text in page.data["texts"]] == TEXTS
    assert all(call["norms"] is not None for call in page.data["calls"])


def test_minilm_with_its_scores_and_sinks(bank: list[Trace], tmp_path: Path) -> None:
    page = written(tmp_path, bank)
    check_page(page, bank)
    assert [scores["text"] for scores in page.data["heads"]] == [0, 1]
    scores = page.data["heads"][1]
    assert scores["calls"] == [6, 7, 8, 9, 10, 11]
    previous = head_scores(bank[1]).previous
    found = scores["values"][scores["names"].index("previous")]
    torch.testing.assert_close(torch.tensor(found, dtype=torch.float64), previous, atol=1e-6, rtol=0)
    assert max(call["difference"] for call in page.data["calls"]) < 1e-3
    assert page.data["texts"][0]["tokens"]["special"] == [0, len(bank[0].tokens) - 1]


def test_chosen_layers_and_heads(bank: list[Trace], tmp_path: Path) -> None:
    page = written(tmp_path, bank[:1], Page("", layers=(1, 4), heads=(0, 7)))
    calls = page.data["calls"]
    assert [call["layer"] for call in calls] == [1, 4]
    for call in calls:
        whole = bank[0].attention[call["layer"]].dense()
        found = page.weights(call)
        assert found.shape[0] == 2
        assert call["head_numbers"] == [0, 7]
        assert abs(found - whole[[0, 7]].double().numpy()).max() <= call["difference"] + 1e-6
        assert page.numbers(call["norms"]).shape == (2, len(bank[0].tokens))
    scores = page.data["heads"][0]
    assert scores["calls"] == [0, 1]
    previous = head_scores(bank[0]).previous[[1, 4]][:, [0, 7]]
    found = torch.tensor(scores["values"][scores["names"].index("previous")], dtype=torch.float64)
    torch.testing.assert_close(found, previous, atol=1e-6, rtol=0)


def test_layers_and_heads_that_are_not_there(bank: list[Trace]) -> None:
    with pytest.raises(RegardError, match=r"attention\[6\]: there is no such layer"):
        add_trace(Page("", layers=(6,)), bank[0], "text 1")
    with pytest.raises(RegardError, match="head 12 does not exist: layer 0 has heads 0 to 11"):
        add_trace(Page("", heads=(12,)), bank[0], "text 1")


def test_a_text_of_one_token_and_an_ablated_edge(tmp_path: Path) -> None:
    model = opened("gpt")
    one = model.trace("bank")
    cut = model.trace("A man is fishing", interventions=[regard.ablate(regard.edge("fishing", "man"))])
    page = written(tmp_path, [one, cut])
    check_page(page, [one, cut])
    assert page.data["calls"][2]["mask"]["kind"] == "runs"
    assert page.weights(page.data["calls"][2])[:, 3, 1].tolist() == [0, 0, 0]


def test_a_long_text_is_not_scored_and_says_so(monkeypatch: pytest.MonkeyPatch, bank: list[Trace]) -> None:
    monkeypatch.setattr("regard.web.add_traces.SCORED", 5)
    page = Page("")
    add_trace(page, bank[0], "text 1")
    assert page.scores == []
    assert page.status == ["The heads of text 1 are not scored: it has more than 5 tokens."]


@pytest.mark.real
def test_smollm2_layer(tmp_path: Path) -> None:
    import os

    folder = os.environ.get("REGARD_SMOLLM2", "")
    if not folder or not list(Path(folder).rglob("*.gguf")):
        pytest.skip(f"no GGUF file in REGARD_SMOLLM2={folder!r}")
    trace: Any = regard.load(folder).trace("The bank of the river is steep. " * 20, layers=[3, 29])
    page = written(tmp_path, [trace])
    calls = page.data["calls"]
    assert [call["layer"] for call in calls] == [3, 29]
    assert [(call["heads"], call["key_heads"]) for call in calls] == [(9, 3)] * 2
    for call in calls:
        check_call(call, trace.attention[call["layer"]], page)
        assert call["difference"] < 1e-3
