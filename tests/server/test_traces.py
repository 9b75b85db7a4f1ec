"""Experiments asked of the server: their pages hold what the library finds."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

import regard
from regard import ablate, attend, edge, head
from regard.attention.masks import function
from regard.errors import RegardError
from regard.explain.causes.outcomes import cosine
from regard.explain.texts.summary import Summary, curves, summarise
from regard.explain.wording import number, numbered
from regard.models.control import trace_control
from regard.server.app import make_app
from regard.server.requests import ExperimentRequest, TraceRequest
from regard.server.serve import open_file
from regard.server.tasks import Limits, Task
from regard.server.traces import (
    change_sentences,
    experiment_page,
    long_page,
    map_page,
    reference_traces,
    too_many_occurrences,
    trace_page,
)
from tests.support import MONEY, RIVER
from tests.support.own_models import TARGETS, TEXTS, opened, pair

TEXT = "A man is fishing on a river"


def test_a_text_has_its_tokens_and_a_served_call_for_each_layer() -> None:
    trace = opened("gpt").trace(TEXT)
    kept = long_page([trace])
    data = kept.page.data()
    texts, calls = data["texts"], data["calls"]
    assert isinstance(texts, list)
    assert isinstance(calls, list)
    assert texts[0]["tokens"]["text"] == [token.text for token in trace.tokens]
    assert len(calls) == len(trace.attention) == len(kept.maps)
    for n, call in enumerate(calls):
        heads, length, _ = trace.attention[n].shape
        assert (call["served"], call["heads"], call["query"]["values"]["shape"][1]) == (True, heads, length)
        assert call["mask"] == {"kind": "band", "low": None, "high": 0}
        assert kept.map(n).weights is trace.attention[n]
    assert kept.page.numbers.blobs == []


def test_a_long_text_opens_with_a_token_chosen() -> None:
    gpt = opened("gpt")
    plain, other = gpt.trace(TEXT), gpt.trace("The bank of a river")
    data = long_page([plain]).page.opening
    assert plain.tokens[data["token"]].text.strip() == "river"  # its last word
    data = long_page([plain, other], "bank").page
    assert data.opening["token"] == other.word("bank")[0].tokens[0]
    assert data.calls[data.opening["call"]]["queries"] == 1  # of the text that has it
    assert long_page([plain], "money").page.opening["token"] is not None


def test_windows_are_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="leave out windows"):
        long_page([minilm.trace(RIVER, window=6)])


@pytest.mark.parametrize("size", [7, 11])
def test_a_map_without_a_text_has_numbers_for_names(size: int) -> None:
    query, key = torch.randn(2, 7, 4), torch.randn(2, size, 4)
    weights = attend(query, key, key, mask=function(lambda i, j: i + j > 2)).weights
    data = map_page(weights, "a map").page.data()
    texts, calls = data["texts"], data["calls"]
    assert isinstance(texts, list)
    assert isinstance(calls, list)
    assert [len(text["tokens"]["text"]) for text in texts] == ([7] if size == 7 else [7, 11])
    assert calls[0]["keys"] == len(texts) - 1
    assert data["opening"] == {"view": "map", "call": 0, "head": 0, "token": 6}  # its last row: none opens empty
    assert calls[0]["mask"] is None  # one that is no band is applied where the weights are computed


def test_saved_maps_and_traces_are_opened_and_nothing_else(tmp_path: Path, bank: Any) -> None:
    query = torch.randn(1, 2, 9, 4)
    weights = attend(query, query, query).weights
    weights.save(tmp_path / "map.safetensors")
    kept = open_file(tmp_path / "map.safetensors", Limits())
    assert kept.page.title == "map.safetensors"
    torch.testing.assert_close(kept.map(0).weights.dense(), weights.dense()[0])
    bank[0].save(tmp_path / "trace.safetensors")
    small = open_file(tmp_path / "trace.safetensors", Limits())
    assert small.maps == {}
    assert small.page.numbers.blobs
    long = open_file(tmp_path / "trace.safetensors", Limits(whole=5))
    assert len(long.maps) == 6
    (tmp_path / "text.txt").write_text("no trace")
    for name in ("text.txt", "nothing.safetensors"):
        with pytest.raises(RegardError, match=name):
            open_file(tmp_path / name, Limits())


def test_a_long_text_is_traced_without_what_its_page_does_not_show(monkeypatch: Any) -> None:
    model, kept = opened("gpt"), []
    trace = type(model).trace

    def watched(*args: Any, **options: Any) -> Any:
        kept.append(options["attention_outputs"])
        return trace(*args, **options)

    monkeypatch.setattr(type(model), "trace", watched)
    tokens = len(model.trace(TEXT, attention_outputs=True).tokens)
    for whole, served in ((tokens, 0), (tokens - 1, len(model.trace(TEXT, attention_outputs=True).attention))):
        page = trace_page(model, TraceRequest(texts=[TEXT]), Limits(whole=whole), Task(60.0))
        assert (len(page.maps), kept[-1]) == (served, served == 0)


def test_a_long_text_of_no_unicode_is_refused() -> None:
    with pytest.raises(RegardError, match="surrogate"):
        trace_page(opened("gpt"), TraceRequest(texts=[TEXT + "\ud800"]), Limits(whole=5), Task(60.0))


CLEAN, CORRUPTED = "We sat on the quiet river bank.", "We sat on the quiet money bank."


def page_of(model: Any, job: Task | None = None, **experiment: Any) -> Any:
    asked = ExperimentRequest.model_validate({"experiment": experiment})
    return experiment_page(model, asked, Limits(), job or Task(1000.0)).page.data()


def panel(page: Any, name: str) -> Any:
    return next(each for each in page["panels"] if each["name"] == name)


def test_patches_are_those_of_a_sweep_and_tell_how_far_they_are(minilm: Any) -> None:
    job = Task(1000.0)
    page = page_of(minilm, job, kind="patch", texts=[CLEAN, CORRUPTED], asked={"word": "bank", "what": "head_outputs"})
    outcome = cosine("bank", minilm.trace(CLEAN)["bank"], "its vector in the clean text")
    found = regard.patch_sweep(minilm, CLEAN, CORRUPTED, outcome, what="head_outputs")
    shown = panel(page, "Patches")["values"]
    for row, shares in zip(shown, found.shares, strict=True):
        assert row == pytest.approx(list(shares), abs=1e-5)
    assert job.done == 1.0
    assert page["calls"] == []


def test_parts_and_scores_stand_beside_the_attention_of_the_text(minilm: Any) -> None:
    trace = minilm.trace(CLEAN)
    page = page_of(minilm, kind="attribute", texts=[CLEAN], asked={"word": "bank", "like": "river"})
    found = regard.attribution(minilm, trace, "bank", toward=trace["river"])
    heads = {name: added for name, added in found.by("writer") if "head" in name}
    assert panel(page, "Heads")["values"][5][7] == pytest.approx(heads["layer 5, head 7"], abs=1e-6)
    assert len(page["calls"]) == 6
    assert page["opening"]["view"] == "panel 0"
    page = page_of(minilm, kind="score", texts=[CLEAN], asked={"query": 7, "key": "river", "layer": 2, "head": 3})
    score = regard.score_sources(minilm, trace, 7, "river", layer=2, head=3)
    assert any(f"{abs(score.score - score.mean):.2f}" in line for line in page["findings"]), page["findings"]


def test_a_next_token_is_split_and_patched() -> None:
    model = opened("gpt")
    text = "A man is fishing on a river"
    page = page_of(model, kind="attribute", texts=[text], asked={"to": "bank", "against": "man"})
    found = regard.attribution(model, model.trace(text), 6, "bank", against="man")
    heads = dict(found.by("writer"))
    assert panel(page, "Heads")["values"][0][0] == pytest.approx(heads["layer 0, head 0"], abs=1e-6)
    page = page_of(model, kind="patch", texts=[text, "A man is fishing on a bank"], asked={"to": "bank"})
    assert panel(page, "Patches")["values"][-1][-1] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize(
    ("model", "experiment", "says"),
    [
        (lambda: opened("gpt"), {"kind": "attribute", "texts": ["A man"], "asked": {}}, "to is needed"),
        (lambda: opened("bert"), {"kind": "attribute", "texts": ["A man"], "asked": {"to": "man"}}, "no language head"),
        (
            lambda: opened("gpt"),
            {"kind": "score", "texts": ["A man"], "asked": {"query": 9, "key": 0, "layer": 0, "head": 0}},
            "9",
        ),
        (lambda: pair(), {"kind": "attribute", "texts": ["A man"], "asked": {"to": "man"}}, "reads pairs"),
    ],
)
def test_what_cannot_be_asked_is_said(model: Callable[[], Any], experiment: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        page_of(model(), **experiment)


def test_a_sweep_that_is_stopped_ends(minilm: Any) -> None:
    job = Task(1000.0)
    job.stop()
    with pytest.raises(HTTPException, match="asked for no longer"):
        page_of(minilm, job, kind="patch", texts=[CLEAN, CORRUPTED], asked={"word": "bank"})


def test_the_followed_word_and_the_most_changed_tokens_are_named_with_their_cosines(minilm: Any) -> None:
    before, after = minilm.trace(RIVER), minilm.trace(RIVER, interventions=[ablate(head(0, 3))])
    cosines = torch.cosine_similarity(before.last_hidden_state.double(), after.last_hidden_state.double(), dim=-1)
    lengths = before.last_hidden_state.double().norm(dim=-1)
    most = (
        ((after.last_hidden_state - before.last_hidden_state).double().norm(dim=-1) / lengths).argsort().tolist()[::-1]
    )
    (line,) = change_sentences(before, after, "without layer 0, head 3")
    first, second, third = ((numbered(before.tokens, n), number(float(cosines[n]))) for n in most[:3])
    said = f"{first[0]} changes most (cosine {first[1]} to before), then {second[0]} ({second[1]}) and {third[0]}"
    assert line == f"Without layer 0, head 3, {said} ({third[1]})."
    bank = before.word("bank")[0].tokens[0]
    line, others = change_sentences(before, after, "without layer 0, head 3", "bank")
    assert line == f"Without layer 0, head 3, “bank” ends at cosine {number(float(cosines[bank]))} to before."
    assert others.startswith("Among other tokens, “")
    assert "“bank”" not in others


def test_only_what_changed_is_named(minilm: Any) -> None:
    before = minilm.trace(RIVER)
    assert change_sentences(before, before, "with nothing") == ["With nothing, no last hidden state changes."]
    last = minilm.trace(
        RIVER, interventions=[ablate(edge(1, 2, layers=5))]
    )  # reaches no other token behind the last layer
    (line,) = change_sentences(before, last, "without it")
    assert line.startswith(f"Without it, {numbered(before.tokens, 1)} changes most (cosine ")
    assert "then" not in line


@pytest.fixture(scope="module")
def client(minilm: Any, stand_in: None) -> Iterator[TestClient]:
    app = make_app([minilm], limits=Limits(occurrences=3))
    with TestClient(app, raise_server_exceptions=False) as found:
        yield found


def cosines(answer: Any) -> list[list[list[float]]]:
    """The curves of a page: [reference word][path][state]."""
    assert answer.status_code == 200, answer.text
    panel = next(panel for panel in answer.json()["panels"] if panel["kind"] == "paths")
    return [curve["paths"] for curve in panel["curves"]]


def near(found: list[list[list[float]]], summary: Summary) -> bool:
    return np.allclose(found, [curve.paths for curve in curves(summary)], rtol=0, atol=1e-5)


def test_the_paths_are_the_librarys(client: TestClient, minilm: Any) -> None:
    asked = {"texts": [RIVER, MONEY], "word": "bank", "references": ["river", "money", "river "]}
    answer = client.post("/api/traces", json=asked)
    traces = list(minilm.trace([RIVER, MONEY]))
    words = [(trace, trace.word("bank")[0]) for trace in traces]
    marks = [minilm.trace(word) for word in ("river", "money")]
    control = trace_control(minilm, traces, "bank")
    assert near(cosines(answer), summarise(traces, "bank", references=marks, control=control))
    assert answer.json()["overview"]["tokens"] == [word.tokens[0] for _, word in words]
    panel = next(panel for panel in answer.json()["panels"] if panel["kind"] == "paths")
    assert [each["neutral"]["sentences"] for each in panel["curves"]] == [39, 39]
    assert any(
        line.startswith("Text 1 moves “bank” towards “river” (cosine 0.48, ") for line in answer.json()["findings"]
    )
    alone = client.post("/api/traces", json={"texts": [RIVER], "word": "bank"})
    assert alone.json()["opening"]["view"] == "overview"
    assert near(cosines(alone), summarise(traces[:1], "bank"))
    assert client.post("/api/traces", json={"texts": [RIVER]}).json()["panels"] == []


def test_an_ablated_word_has_both_paths(client: TestClient, minilm: Any) -> None:
    cut = {"kind": "head", "layer": 0, "head": 2, "part": None}
    answer = client.post("/api/traces", json={"texts": [RIVER], "word": "bank", "ablations": [cut]})
    traces = [minilm.trace(RIVER), minilm.trace(RIVER, interventions=[ablate(head(0, 2))])]
    words = [(trace, trace.word("bank")[0]) for trace in traces]
    ((as_is, without),) = found = cosines(answer)
    assert near(found, summarise(traces, "bank"))
    assert as_is[-1] != without[-1]
    panel = answer.json()["panels"][0]
    assert [path["of"] for path in panel["paths"]] == ["as is", "without layer 0, head 2"]
    assert answer.json()["overview"]["tokens"] == [word.tokens[0] for _, word in words]


def test_a_word_that_stands_there_too_often_is_not_followed(client: TestClient) -> None:
    text = "The cat and the dog saw the man in the house."
    answer = client.post("/api/traces", json={"texts": [text], "word": "the"})
    line = "The path of “the” through the layers is not shown: it occurs 4 times, at most 3 are allowed here."
    assert (answer.json()["findings"], answer.json()["panels"]) == ([line], [])
    cut = {"kind": "head", "layer": 0, "head": 2, "part": None}
    answer = client.post("/api/traces", json={"texts": [text], "word": "the", "ablations": [cut]})
    assert line.replace("4", "8") in answer.json()["findings"]
    assert answer.json()["panels"] == []


def test_long_texts_say_that_it_is_not_shown() -> None:
    model = opened("llama")
    asked = TraceRequest(texts=["A bank . " * 20], word="bank")
    page = trace_page(model, asked, Limits(whole=20), Task(60.0)).page
    why = "a text is too long for a browser to compute with"
    assert page.findings == [f"The path of “bank” through the layers is not shown: {why}."]


def test_models_that_read_pairs_have_reference_words_for_their_encoder() -> None:
    model = pair()
    asked = TraceRequest(texts=[TEXTS[0]], word="bank", references=["river", "man"])
    assert [each.text for each in reference_traces(model, asked)] == ["river", "man"]
    page = trace_page(model, asked, Limits(), Task(60.0)).page
    traces = [model.trace(TEXTS[0], target=TARGETS[0])]
    references, control = reference_traces(model, asked), trace_control(model, traces, "bank")
    seen = summarise(traces, "bank", references=references, control=control)
    found: Any = page.panels[0]["curves"]
    assert [curve["label"] for curve in found] == ["river", "man"]
    assert near([curve["paths"] for curve in found], seen)


def test_occurrences_in_windows_are_counted_once(minilm: Any) -> None:
    windowed = minilm.trace("A man is fishing on a river bank and another is sitting at a bank.", window=12)
    assert too_many_occurrences([windowed], "bank", Limits(occurrences=2)) is None
    assert "it occurs 2 times" in str(too_many_occurrences([windowed], "bank", Limits(occurrences=1)))
    assert too_many_occurrences([windowed], None, Limits(occurrences=0)) is None
