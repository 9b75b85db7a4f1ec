"""Questions to the real model: what a browser gets is what the library gives, and what is wrong is refused by name."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import regard
from regard import ablate, head, patch
from regard.questions.generate.answer import generated
from regard.server.app import make_app
from regard.server.tasks import Task
from tests.support import MONEY, RIVER
from tests.support.own_models import opened, pair
from tests.support.web_pages import decoded

pytestmark = pytest.mark.usefixtures("stand_in")


def test_a_traced_text_is_the_librarys_page(client: TestClient, bank: Any) -> None:
    answer = client.post("/api/traces", json={"texts": [RIVER, MONEY]})
    page, name = answer.json(), answer.headers["x-page"]
    assert [text["text"] for text in page["texts"]] == [RIVER, MONEY]
    call = next(each for each in page["calls"] if each["queries"] == 1 and each["layer"] == 3)
    values, scales = (decoded(client, name, call["query"][part]).astype(np.float64) for part in ("values", "scales"))
    there = bank[1].attention[3].query[0].double().numpy()
    assert np.abs(values * scales[..., None] - there).max() <= 1.6e-5 * np.abs(there).max() * 1.02
    assert client.get(f"/api/pages/{name}").json() == page


def test_an_ablation_gives_before_and_after(client: TestClient, minilm: Any) -> None:
    cut = {"kind": "head", "layer": 2, "head": 5}
    answer = client.post("/api/traces", json={"texts": [RIVER], "ablations": [cut]})
    page, name = answer.json(), answer.headers["x-page"]
    assert [text["name"] for text in page["texts"]] == ["as is", "without layer 2, head 5"]
    assert page["findings"][0].startswith("Without layer 2, head 5, “")
    after = minilm.trace(RIVER, interventions=[ablate(head(2, 5))])
    call = page["calls"][page["comparisons"][0]["after"][4]]
    values, scales = (decoded(client, name, call["query"][part]).astype(np.float64) for part in ("values", "scales"))
    there = after.attention[4].query[0].double().numpy()
    assert np.abs(values * scales[..., None] - there).max() <= 1.6e-5 * np.abs(there).max() * 1.02
    edge = {"kind": "edge", "query": "bank", "key": "river", "layer": None, "head": None, "part": None}
    assert client.post("/api/traces", json={"texts": [RIVER], "ablations": [edge]}).status_code == 200


def test_a_state_of_another_text_is_patched_in(client: TestClient, minilm: Any) -> None:
    other = "She took the money to the old bank."
    asked = {"kind": "patch", "what": "hidden_states", "layer": 2, "source": other, "at": "bank", "source_at": None}
    answer = client.post("/api/traces", json={"texts": [RIVER], "ablations": [asked]})
    page, name = answer.json(), answer.headers["x-page"]
    assert page["comparisons"][0]["name"].startswith("before and after: patched: output of layer 2")
    assert page["findings"][0].startswith(f"With “bank” in layer 2 as in “{other}”, “bank” changes most (cosine ")
    done = patch("hidden_states", layer=2, at="bank", source=minilm.trace(other))
    call = page["calls"][page["comparisons"][0]["after"][3]]
    values, scales = (decoded(client, name, call["query"][part]).astype(np.float64) for part in ("values", "scales"))
    there = minilm.trace(RIVER, interventions=[done]).attention[3].query[0].double().numpy()
    assert np.abs(values * scales[..., None] - there).max() <= 1.6e-5 * np.abs(there).max() * 1.02
    itself = client.post("/api/traces", json={"texts": [RIVER], "ablations": [asked | {"source": RIVER}]}).json()
    assert itself["findings"][0].endswith("no last hidden state changes.")


def test_two_models_read_a_text_and_are_named(minilm: Any, stand_in: None) -> None:
    twin = copy(minilm)
    twin.name = "twin"
    with TestClient(make_app([minilm, twin]), raise_server_exceptions=False) as client:
        page = client.post("/api/traces", json={"texts": [RIVER], "other": 1}).json()
        assert [text["name"] for text in page["texts"]] == [minilm.name, "twin"]
        assert page["overview"]["kind"] == "texts"
        refused = client.post("/api/traces", json={"texts": [RIVER], "other": 1, "word": "bank"})
        assert "two models are compared as they are" in refused.json()["error"]


def test_the_same_question_is_answered_once(client: TestClient) -> None:
    asked = {"texts": ["The cat sat on the mat."]}
    first, second = (client.post("/api/traces", json=asked, headers={"x-job": name}) for name in ("one", "two"))
    assert first.headers["x-page"] == second.headers["x-page"]
    assert first.content == second.content
    nothing = {"done": 0, "said": ""}
    assert client.get("/api/jobs/one").json() | {"done": 0} == {"known": True, "waits": False, **nothing}
    assert client.get("/api/jobs/two").json() == {"known": False, "waits": True, **nothing}  # there was nothing to do
    assert client.delete("/api/jobs/two").json() == {"stopped": False}


def test_equal_questions_asked_at_once_are_answered_once(client: TestClient, minilm: Any, monkeypatch: Any) -> None:
    asked, traced = {"texts": ["Two pages ask for this at once."]}, []
    trace = type(minilm).trace

    def counted(self: Any, *given: Any, **options: Any) -> Any:
        traced.append(given)
        time.sleep(1)  # the others come meanwhile
        return trace(self, *given, **options)

    monkeypatch.setattr(type(minilm), "trace", counted)
    with ThreadPoolExecutor(3) as threads:
        answers = list(threads.map(lambda _: client.post("/api/traces", json=asked), range(3)))
    assert [each.status_code for each in answers] == [200] * 3
    assert len({each.content for each in answers}) == 1
    assert len(traced) == 1


def test_a_model_goes_on_with_a_text_and_says_what_it_writes() -> None:
    model, said = opened("gpt"), []
    with TestClient(make_app([model]), raise_server_exceptions=False) as client:
        work = client.app.state.work  # type: ignore[attr-defined]
        say = Task.report_text

        def spied(job: Task, text: str, done: float) -> None:
            say(job, text, done)
            said.append((client.get("/api/jobs/a").json()["said"], text))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Task, "report_text", spied)
            asked = {"prompt": "A man is fishing", "new_tokens": 5}
            page = client.post("/api/generations", json=asked, headers={"x-job": "a"}).json()
        written = model.generate("A man is fishing", max_new_tokens=5, do_sample=False)
        assert said[-1] == (written.new, written.new)
        assert len(said) == 5
        assert work.waiter("a").task.text == written.new
        own = generated(written)
        chances = [each.probability for each in own.plain.how.tokens]
        assert [step["probability"] for step in page["overview"]["texts"][0]["steps"]] == chances
        assert (page["opening"]["view"], page["opening"]["token"]) == ("overview", own.opening()["token"])
        assert page["findings"] == own.findings()
        cut = [{"kind": "head", "layer": 0, "head": 0}]
        page = client.post("/api/generations", json=asked | {"ablations": cut}).json()
        assert [text["name"] for text in page["texts"]] == ["as is", "without layer 0, head 0"]
        assert page["findings"][0].startswith("Without layer 0, head 0, the model writes ")
        assert len(page["overview"]["texts"]) == 2
        for wrong, says in (
            ({"prompt": ""}, "prompt"),
            ({"new_tokens": 0}, "new_tokens"),
            ({"new_tokens": 500}, "can be"),
        ):
            answer = client.post("/api/generations", json=asked | wrong)
            assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.json()


def test_what_is_written_is_steered_beside_what_is_not() -> None:
    model, asked = opened("gpt"), {"prompt": "A man is fishing", "new_tokens": 5}
    with TestClient(make_app([model]), raise_server_exceptions=False) as client:
        steer = {"towards": "the money", "away": "the river", "strength": 40}
        page = client.post("/api/generations", json=asked | {"steer": steer}).json()
        assert [text["name"] for text in page["texts"]] == ["plain", "steered"]
        both = model.trace(["the money", "the river"])
        push = regard.steer((both[0], both[1]), layer=len(both[0].attention) // 2, strength=40)
        plain, steered = (
            model.generate("A man is fishing", max_new_tokens=5, do_sample=False, interventions=each)
            for each in ([], [push])
        )
        assert plain.new != steered.new
        assert [text["text"] for text in page["texts"]] == [plain.text, steered.text]
        assert page["opening"]["view"] == "overview"  # both texts, one above the other
        assert page["findings"] == generated(plain, steered, str(push)).findings()
        for wrong, says in (({"layer": 99}, "layer"), ({"away": ""}, "away"), ({"strength": 1e9}, "strength")):
            answer = client.post("/api/generations", json=asked | {"steer": steer | wrong})
            assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.json()
        same = client.post("/api/generations", json=asked | {"steer": steer | {"strength": 0}}).json()
        assert "Steering changed no token: try a larger “strength” or another “layer”." in same["findings"]


def test_a_model_that_cannot_be_steered_says_so(client: TestClient) -> None:
    steer = {"towards": "the money", "away": "the river"}
    for each, says in ((client, "all-MiniLM-L6-v2 has no language head that writes"), (None, "reads pairs")):
        with TestClient(make_app([pair()]), raise_server_exceptions=False) as pairs:
            answer = (each or pairs).post("/api/generations", json={"prompt": "A man", "steer": steer})
            assert (answer.status_code, says in answer.json()["error"]) == (422, True), answer.json()


def test_a_refusal_names_the_control_of_the_page(client: TestClient) -> None:
    error = client.post("/api/traces", json={"texts": ["one two " * 600]}).json()["error"]
    assert error.endswith("in overlapping windows, with “read texts in windows”")


def test_a_model_that_cannot_write_says_so(client: TestClient) -> None:
    answer = client.post("/api/generations", json={"prompt": "A man"})
    assert (answer.status_code, "cannot generate" in answer.json()["error"]) == (422, True)


def test_an_experiment_is_a_page(client: TestClient) -> None:
    asked = {"experiment": {"kind": "attribute", "texts": [RIVER], "asked": {"word": "bank", "like": "river"}}}
    page = client.post("/api/experiments", json=asked).json()
    assert "Heads" in [panel["name"] for panel in page["panels"]]
    for wrong in ({"kind": "nothing"}, {"kind": "score", "text": RIVER}, asked["experiment"] | {"path": "/etc"}):
        assert client.post("/api/experiments", json={"experiment": wrong}).status_code == 422


def test_a_server_without_a_store_says_so(client: TestClient) -> None:
    assert client.get("/api/state").json()["stores"] == []
    answer = client.post("/api/corpora", json={"about": "occurrences", "word": "bank"})
    assert (answer.status_code, "--store" in answer.json()["error"]) == (422, True)


PATCH = {"kind": "patch", "what": "hidden_states", "layer": 1, "source": "a", "at": "a"}
WRONG: list[tuple[Any, int, str]] = [
    ({}, 422, "texts: Field required"),
    ({"texts": []}, 422, "texts"),
    ({"texts": [3]}, 422, "texts.0"),
    ({"texts": "a text"}, 422, "texts"),
    ({"texts": ["  "]}, 422, "text"),
    ({"texts": ["a"] * 4}, 413, "at most 3 are allowed"),
    ({"texts": ["a" * 5001]}, 413, "at most 5,000 are allowed"),
    ({"texts": ["word " * 700]}, 422, "512"),
    ({"texts": ["a"], "model": 1}, 422, "numbered from 0"),
    ({"texts": ["a"], "model": "/etc/passwd"}, 422, "model"),
    ({"texts": ["a"], "folder": "/etc"}, 422, "folder: Extra inputs"),
    ({"texts": ["a"], "ablations": [{"kind": "head", "layer": 6, "head": 0}]}, 422, "layer"),
    ({"texts": ["a"], "ablations": [{"kind": "head", "layer": True, "head": 0}]}, 422, "layer"),
    ({"texts": ["a"], "ablations": [{"kind": "nothing"}]}, 422, "ablations.0"),
    ({"texts": ["a"], "ablations": [{"kind": "edge", "query": "b", "key": "a"}]}, 422, "'b'"),
    ({"texts": ["a"], "ablations": [PATCH | {"at": "b"}]}, 422, "'b'"),
    ({"texts": ["a"], "ablations": [PATCH | {"layer": 6}]}, 422, "layer"),
    ({"texts": ["a"], "ablations": [PATCH | {"layer": "output"}]}, 422, "layer"),
    ({"texts": ["a"], "ablations": [PATCH | {"source": ""}]}, 422, "source"),
    ({"texts": ["a"], "ablations": [PATCH | {"head": 1}]}, 422, "have no heads"),
    ({"texts": ["a"], "ablations": [PATCH | {"source": "a man", "at": None}]}, 422, "cannot be aligned"),
    ({"texts": ["a"], "ablations": [PATCH | {"source": "a" * 2_000_000}]}, 413, "2,000,001 characters"),
    ({"texts": ["a"], "window": 1}, 422, "window"),
    ({"texts": ["a"], "word": "zebra"}, 422, "zebra"),
    ({"texts": ["a", "b"], "word": "a"}, 422, "text 2: "),
    ({"texts": ["a"], "references": ["b"]}, 422, "references needs word"),
    ({"texts": ["a"], "word": "a", "references": ["  "]}, 422, "references: ''"),
    ({"texts": ["a"], "word": "a", "references": ["b"] * 17}, 422, "references: List should have at most 16"),
    ([], 422, ""),
    (None, 422, ""),
]


@pytest.mark.parametrize(("body", "status", "says"), WRONG, ids=[str(n) for n in range(len(WRONG))])
def test_what_is_wrong_is_refused_in_one_line(client: TestClient, body: Any, status: int, says: str) -> None:
    answer = client.post("/api/traces", json=body)
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.json()
    assert "\n" not in answer.json()["error"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b'{"texts": ["\\ud800"]}', b'{"texts": [NaN]}', b'{"texts": ["a"]', b"[" * 100_000],
)
def test_malformed_json_is_refused(client: TestClient, content: bytes) -> None:
    answer = client.post("/api/traces", content=content, headers={"content-type": "application/json"})
    assert 400 <= answer.status_code < 500, answer.text
    json.loads(answer.content)["error"].encode("ascii", "strict")
