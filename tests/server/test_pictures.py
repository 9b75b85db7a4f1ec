"""Pictures that are sent to a server: their page is that of `regard see --image`, and what is refused is one line."""

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from starlette.testclient import TestClient

import regard
from regard.server.app import make_app
from regard.server.tasks import Limits
from regard.vision.answer import looked
from tests.test_images import damaged_tiff
from tests.vision.test_pictured_text import save_looker
from tests.vision.test_pictures import PROCESSOR, built, noise

pytestmark = pytest.mark.usefixtures("stand_in")
TEXT = "what is on the mat ?"
MOST = 40_000  # bytes of a picture


@pytest.fixture(scope="module")
def models(minilm: Any, tmp_path_factory: Any) -> list[Any]:
    """One that reads texts alone, one that reads images only, and one that reads both."""
    folder: Path = tmp_path_factory.mktemp("looker")
    save_looker(folder)
    return [minilm, regard.load(built("vit"), processor=PROCESSOR), regard.load(folder)]


@pytest.fixture(scope="module")
def client(models: list[Any], stand_in: None) -> Iterator[TestClient]:
    with TestClient(make_app(models, limits=Limits(picture=MOST)), raise_server_exceptions=False) as found:
        yield found


def file_of(image: Any, form: str = "PNG") -> bytes:
    written = io.BytesIO()
    Image.fromarray(image).save(written, form)
    return written.getvalue()


def ask(client: TestClient, data: bytes, **more: Any) -> Any:
    body = {"model": 1, "name": "cat.png", "picture": base64.b64encode(data).decode(), **more}
    return client.post("/api/pictures", json=body)


def test_the_state_says_which_models_read_pictures(client: TestClient) -> None:
    state = client.get("/api/state").json()
    assert [each["pictures"] for each in state["models"]] == [None, "alone", "in a text"]
    assert state["limits"]["picture"] == MOST


@pytest.mark.parametrize(("number", "text"), [(1, None), (2, TEXT)])
def test_a_pictures_page_is_that_of_see(client: TestClient, models: list[Any], tmp_path: Path, number: int, text: Any,
                                        monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    data = file_of(noise(131, 97))
    (tmp_path / "cat.png").write_bytes(data)
    expected = looked([models[number].trace(text, images=tmp_path / "cat.png", logits=False)]).page().data()
    monkeypatch.chdir(tmp_path)
    answer = ask(client, data, model=number, text=text)
    assert answer.status_code == 200
    assert answer.json() == json.loads(json.dumps(expected))
    assert [each.name for each in tmp_path.iterdir()] == ["cat.png"]  # nothing was written
    kept = client.get(f"/api/pages/{answer.headers['x-page']}")
    assert kept.json() == answer.json()


def test_what_is_refused_is_one_line(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = file_of(noise(67, 59))
    for data, more, status, says in [
        (b"no picture", {}, 422, "image 'cat.png' cannot be read, expected one of PNG"),
        (whole[: len(whole) // 2], {}, 422, "image 'cat.png' is damaged, or cut short"),
        (bytes(MOST + 1), {}, 413, "cat.png has 40,001 bytes, at most 40,000 are allowed"),
        (damaged_tiff(), {}, 422, "image 'cat.png' is damaged, or cut short"),
        (whole, {"model": 0}, 422, "expected a model that reads images"),
        (whole, {"model": 3}, 422, "model: got 3"),
        (whole, {"text": TEXT}, 422, "reads images only"),
        (whole, {"model": 2}, 422, "reads images in a text: pass one as well"),
        (whole, {"picture": "%%%"}, 422, "picture: expected the bytes of a file in base64"),
        (whole, {"picture": "é"}, 422, "picture: expected the bytes of a file in base64"),
        (whole, {"picture": ""}, 422, "picture: "),
        (whole, {"folder": "/"}, 422, "folder: "),
    ]:
        answer = ask(client, data, **more)
        assert answer.status_code == status, says
        assert says in answer.json()["error"]
        assert "\n" not in answer.json()["error"]
    monkeypatch.setattr("regard.images.MAX_PIXELS", 1000)
    assert "has too many pixels: at most 1,000 are read" in ask(client, whole).json()["error"]


def test_the_text_beside_it_counts_as_texts_do(models: list[Any], stand_in: None) -> None:
    with TestClient(make_app(models, limits=Limits(characters=7))) as client:
        answer = ask(client, file_of(noise(31, 29)), model=2, text=TEXT)
    assert (answer.status_code, answer.json()["error"]) == (413, "texts: got 20 characters, at most 7 are allowed")
