"""A word that is followed in the server: the library's own paths, before and after, and what is refused."""

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from regard import ablate, head
from regard.explain.texts.summary import summarise
from regard.explain.vectors.movement import movement
from regard.models.control import trace_control
from regard.server.app import make_app
from regard.server.asked import TraceAsked
from regard.server.followed import reference_traces, too_often
from regard.server.traces import trace_page
from regard.server.work import Job, Limits
from tests.support import MONEY, RIVER
from tests.support.own_models import TARGETS, TEXTS, opened, pair
from tests.support.web_pages import build_nothing


@pytest.fixture(scope="module")
def client(minilm: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch:
        build_nothing(tmp_path_factory.mktemp("page") / "built", patch)
        app = make_app([minilm], limits=Limits(occurrences=3))
        with TestClient(app, raise_server_exceptions=False) as found:
            yield found


def paths(answer: Any) -> dict[str, list[list[float]]]:
    assert answer.status_code == 200, answer.text
    panel = next(panel for panel in answer.json()["panels"] if panel["kind"] == "paths")
    return {path["label"]: path["points"] for path in panel["paths"]}


def near(found: dict[str, list[list[float]]], wanted: Any) -> bool:
    return all(
        abs(one - other) < 1e-5
        for points, path in zip(found.values(), wanted, strict=True)
        for point, place in zip(points, path, strict=True)
        for one, other in zip(point, place, strict=True)
    )


def test_the_paths_are_the_librarys(client: TestClient, minilm: Any) -> None:
    asked = {"texts": [RIVER, MONEY], "word": "bank", "references": ["river", "money", "river "]}
    answer = client.post("/api/traces", json=asked)
    traces = list(minilm.trace([RIVER, MONEY]))
    words = [(trace, trace.word("bank")[0]) for trace in traces]
    marks = [minilm.trace(word) for word in ("river", "money")]
    control = trace_control(minilm, traces, "bank")
    seen = summarise(traces, "bank", references=marks, control=control).movement
    assert seen is not None
    assert near(paths(answer), seen.words)
    assert answer.json()["opening"]["view"] == "panel 0"
    panel = next(panel for panel in answer.json()["panels"] if panel["kind"] == "paths")
    assert [each["neutral"]["sentences"] for each in panel["curves"]] == [39, 39]
    assert any(
        line.startswith("Text 1 moves “bank” towards “river” (cosine 0.48, ") for line in answer.json()["findings"]
    )
    alone = client.post("/api/traces", json={"texts": [RIVER], "word": "bank"})
    assert alone.json()["opening"]["view"] == "tokens"  # one path is nothing to compare
    assert near(paths(alone), movement(words[:1], traces[:1], []).words)
    assert client.post("/api/traces", json={"texts": [RIVER]}).json()["panels"] == []


def test_an_ablated_word_has_both_paths_on_one_plane(client: TestClient, minilm: Any) -> None:
    cut = {"kind": "head", "layer": 0, "head": 2, "part": None}
    answer = client.post("/api/traces", json={"texts": [RIVER], "word": "bank", "ablations": [cut]})
    traces = [minilm.trace(RIVER), minilm.trace(RIVER, interventions=[ablate(head(0, 2))])]
    words = [(trace, trace.word("bank")[0]) for trace in traces]
    found = paths(answer)
    assert near(found, movement(words, traces, []).words)
    assert found["1"][-1] != found["2"][-1]
    panel = answer.json()["panels"][0]
    assert [path["of"] for path in panel["paths"]] == ["text, before", "text, after"]
    assert answer.json()["opening"]["view"] == "compare"


def test_a_word_that_stands_there_too_often_is_not_followed(client: TestClient) -> None:
    text = "The cat and the dog saw the man in the house."
    answer = client.post("/api/traces", json={"texts": [text], "word": "the"})
    line = "The path of “the” through the layers is not shown: it stands there 4 times, 3 are the most here."
    assert (answer.json()["findings"], answer.json()["panels"]) == ([line], [])
    cut = {"kind": "head", "layer": 0, "head": 2, "part": None}
    answer = client.post("/api/traces", json={"texts": [text], "word": "the", "ablations": [cut]})
    assert line.replace("4", "8") in answer.json()["findings"]
    assert answer.json()["panels"] == []


def test_long_texts_say_that_it_is_not_shown() -> None:
    model = opened("llama")
    asked = TraceAsked(texts=["A bank . " * 20], word="bank")
    page = trace_page(model, asked, Limits(whole=20), Job(60.0)).page
    why = "a text is too long for a browser to compute with"
    assert page.findings == [f"The path of “bank” through the layers is not shown: {why}."]


def test_models_that_read_pairs_have_reference_words_for_their_encoder() -> None:
    model = pair()
    asked = TraceAsked(texts=[TEXTS[0]], targets=[TARGETS[0]], word="bank", references=["river", "man"])
    assert [each.text for each in reference_traces(model, asked)] == ["river", "man"]
    page = trace_page(model, asked, Limits(), Job(60.0)).page
    traces = [model.trace(TEXTS[0], target=TARGETS[0])]
    references, control = reference_traces(model, asked), trace_control(model, traces, "bank")
    seen = summarise(traces, "bank", references=references, control=control)
    assert seen.movement is not None
    marks: Any = page.panels[0]["marks"]
    assert marks[0]["label"] == "river"
    assert near({"": [mark["point"] for mark in marks]}, [seen.movement.references])


def test_occurrences_in_windows_are_counted_once(minilm: Any) -> None:
    windowed = minilm.trace("A man is fishing on a river bank and another is sitting at a bank.", window=12)
    assert too_often([windowed], "bank", Limits(occurrences=2)) is None
    assert "it stands there 2 times" in str(too_often([windowed], "bank", Limits(occurrences=1)))
    assert too_often([windowed], None, Limits(occurrences=0)) is None
