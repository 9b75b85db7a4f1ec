"""Pages by their names: files, numbers, places and tiles are the library's, and what is not there is refused."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

from regard.server.app import make_app
from regard.server.page_cache import ZoomMap
from regard.server.traces import map_page
from tests.support import RIVER
from tests.support.own_models import opened
from tests.support.web_pages import SCRIPT, Parsed, decoded

pytestmark = pytest.mark.usefixtures("stand_in")


def test_a_page_is_saved_as_the_file_that_works_offline(client: TestClient) -> None:
    name = client.post("/api/traces", json={"texts": [RIVER]}).headers["x-page"]
    answer = client.get(f"/api/pages/{name}/file")
    assert answer.headers["content-disposition"] == 'attachment; filename="regard.html"'
    read = Parsed(answer.text)
    data = next("".join(text) for _, attributes, text in read.elements if attributes.get("id") == "regard-data")
    assert json.loads(data) == client.get(f"/api/pages/{name}").json()
    assert SCRIPT.split(";")[0][:20] in answer.text
    answer = client.get("/api/pages/file-0/file")
    assert (answer.status_code, "choose a shorter text" in answer.json()["error"]) == (422, True)


def test_senses_come_as_numbers_and_their_places_one_by_one(asking: TestClient, bank_store: Any) -> None:
    answer = asking.post("/api/corpora", json={"about": "senses", "word": "bank", "senses": 2})
    page, name = answer.json(), answer.headers["x-page"]
    found, at = bank_store.senses("bank", 2), f"/api/pages/{name}/panels/0/places"
    cloud = page["panels"][0]
    order = found.order()
    np.testing.assert_array_equal(decoded(asking, name, cloud["points"]), found.points[order].astype(np.float32))
    np.testing.assert_array_equal(decoded(asking, name, cloud["of"]), found.clusters.labels[order])
    told = asking.get(f"{at}?first=2&count=3").json()
    assert told["total"] == 16
    assert [each["document"] for each in told["places"]] == [found.found.document[n] for n in order[2:5]]
    text = asking.get(f"{at}/2/text").json()
    assert text["text"][text["start"] : text["end"]] == "bank"
    assert (text["document"], text["model"]) == (told["places"][0]["document"], 0)
    assert asking.post("/api/traces", json={"model": 0, "texts": [text["text"]]}).status_code == 200
    read = Parsed(asking.get(f"/api/pages/{name}/file").text)  # a file of its own: it has no server to ask
    data = next("".join(part) for _, attributes, part in read.elements if attributes.get("id") == "regard-data")
    assert json.loads(data)["panels"][0]["kind"] == "scatter"
    for wrong, status, says in (
        (f"{at}?first=16", 404, "there are 16"),
        (f"{at}?first=-1", 422, "first"),
        (f"{at}?count=0", 422, "count"),
        (f"{at}?count=501", 422, "count"),
        (f"{at}?first=x", 422, "first"),
        (f"{at}/16/text", 404, "there are 16"),
        (f"{at}/x/text", 422, "number"),
        (f"/api/pages/{name}/panels/1/places", 404, "panel 1"),
        (f"/api/pages/{name}/panels/99/places/0/text", 404, "panel 99"),
        ("/api/pages/nothing/panels/0/places", 404, "no longer stored"),
    ):
        answer = asking.get(wrong)
        assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.text


def test_a_page_of_too_many_points_is_no_file(asking: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.corpus.questions.senses.answer.MOST", 15)
    name = asking.post("/api/corpora", json={"about": "senses", "word": "bank", "senses": 2}).headers["x-page"]
    answer = asking.get(f"/api/pages/{name}/file")
    assert (answer.status_code, "at most 15" in answer.json()["error"]) == (422, True)


def test_without_the_model_of_a_store_its_texts_are_not_traced(bank_store: Any, stand_in: None) -> None:
    with TestClient(make_app([opened("gpt")], stores=[bank_store]), raise_server_exceptions=False) as client:
        name = client.post("/api/corpora", json={"about": "occurrences", "word": "bank"}).headers["x-page"]
        assert client.get(f"/api/pages/{name}/panels/0/places").status_code == 200
        answer = client.get(f"/api/pages/{name}/panels/0/places/0/text")
        assert (answer.status_code, "embedded with all-MiniLM-L6-v2" in answer.json()["error"]) == (422, True)


def test_a_map_comes_as_tiles_rows_and_columns(client: TestClient, weights: Any) -> None:
    at = "/api/pages/file-0/calls/0"
    assert client.get("/api/pages/file-0").json()["calls"][0]["served"] is True
    assert client.get(f"{at}/tiles/0/9/0?head=1").status_code == 404  # before any pass
    assert client.post(f"{at}/pass").json() == {"ready": True}
    dense = weights.dense()
    tile = np.frombuffer(client.get(f"{at}/tiles/0/1/0?head=1").content, "<f4").reshape(128, 128)
    np.testing.assert_allclose(tile, dense[1, 128:256, :128], atol=1e-6)
    mean = np.frombuffer(client.get(f"{at}/tiles/0/2/1").content, "<f4").reshape(128, 128)
    np.testing.assert_allclose(mean[:45], dense[:, 256:, 128:256].mean(0), atol=1e-6)
    assert not mean[45:].any()
    row = np.frombuffer(client.get(f"{at}/rows/300?head=0").content, "<f4")
    np.testing.assert_allclose(row, dense[0, 300], atol=1e-6)
    column = np.frombuffer(client.get(f"{at}/columns/7").content, "<f4")
    np.testing.assert_allclose(column, dense[:, :, 7].mean(0), atol=1e-6)


def test_what_asks_while_a_pass_runs_waits_for_that_one(
    minilm: Any, weights: Any, stand_in: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, prepare = [], ZoomMap.prepare

    def slow(self: ZoomMap, progress: Any) -> None:
        made.append(self)
        time.sleep(0.5)
        prepare(self, progress)

    monkeypatch.setattr(ZoomMap, "prepare", slow)
    at = "/api/pages/file-0/calls/0"
    with (
        TestClient(make_app([minilm], opened=[map_page(weights, "a map")])) as client,
        ThreadPoolExecutor(3) as threads,
    ):
        asked = [threads.submit(client.post, f"{at}/pass") for _ in range(2)]
        asked.append(threads.submit(client.get, f"{at}/tiles/0/0/0"))
        assert [each.result().status_code for each in asked] == [200, 200, 200]
    assert len(made) == 1


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/pages/nothing", 404),
        ("/api/pages/..%2F..%2Fetc", 404),
        ("/api/pages/file-0/numbers/0", 404),
        ("/api/pages/file-0/numbers/-1", 422),
        ("/api/pages/file-0/calls/1/rows/0", 404),
        ("/api/pages/file-0/calls/0/rows/301", 404),
        ("/api/pages/file-0/calls/0/rows/0?head=2", 404),
        ("/api/pages/file-0/calls/0/tiles/41/0/0", 422),
        ("/api/pages/file-0/calls/0/tiles/0/99999999999999999999/0", 422),
        ("/api/jobs/NOTHING", 422),
        ("/docs", 404),
        ("/live.js/../../page.py", 404),
    ],
)
def test_what_is_not_there_is_refused(client: TestClient, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["error"]
