"""Names on the hub: a server of our own answers as the hub would, or nobody does."""

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import huggingface_hub.constants as constants
import huggingface_hub.errors as errors
import pytest

from regard.errors import RegardError
from regard.model_files import hub

ANSWERS: dict[str, tuple[int, dict[str, str]]] = {
    "absent/model": (404, {"X-Error-Code": "RepoNotFound"}),
    "private/model": (401, {}),
    "gated/model": (403, {"X-Error-Code": "GatedRepo"}),
    "bare/model": (404, {"X-Error-Code": "EntryNotFound"}),
    "ill/model": (503, {}),
    "good/model": (200, {"ETag": '"1"', "X-Repo-Commit": "0" * 40}),
}


class Hub(BaseHTTPRequestHandler):
    """A hub with one file."""

    def do_HEAD(self) -> None:
        status, headers = ANSWERS[self.path.split("/resolve/")[0].strip("/")]
        self.send_response(status)
        for name, value in {"Content-Length": "0", **headers}.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@pytest.fixture
def answering(monkeypatch, tmp_path) -> Iterator[None]:
    """A network on which the hub is a server of this process, with nothing in the cache."""
    server = HTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    _ask(monkeypatch, tmp_path, f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    server.server_close()


def _ask(monkeypatch, folder, endpoint: str) -> None:
    """Let the hub's client ask an endpoint, though the tests run offline."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", endpoint + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(folder))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("absent/model", "has no model of that name, or a private one that needs a login"),
        ("private/model", "has no model of that name, or a private one that needs a login"),
        ("gated/model", "for those alone who agreed to its terms"),
        ("bare/model", "no config.json of it"),
        ("ill/model", r"answered with an error \(503\)"),
    ],
)
def test_what_the_hub_does_not_have(answering, name: str, says: str) -> None:
    with pytest.raises(RegardError, match=f"model '{name}': there is no such folder here, .*the hub http.*{says}"):
        hub.check_there(name)


def test_what_the_hub_has(answering) -> None:
    hub.check_there("good/model")


def test_nobody_answers(monkeypatch, tmp_path) -> None:
    server = HTTPServer(("127.0.0.1", 0), Hub)
    server.server_close()  # its port refuses now
    _ask(monkeypatch, tmp_path, f"http://127.0.0.1:{server.server_port}")
    with pytest.raises(RegardError, match="cannot be reached .*is there a network"):
        hub.check_there("some/model")


def test_a_host_that_is_looked_up_for_ever(monkeypatch, tmp_path) -> None:
    _ask(monkeypatch, tmp_path, "http://127.0.0.1:1")
    monkeypatch.setattr(hub, "PATIENCE", -0.9)
    monkeypatch.setattr(hub, "_fault", lambda _name: time.sleep(2))
    with pytest.raises(RegardError, match="did not answer within"):
        hub.check_there("some/model")


def test_the_hub_is_not_asked(monkeypatch, tmp_path) -> None:
    _ask(monkeypatch, tmp_path, "http://127.0.0.1:1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(hub, "_fault", lambda name: pytest.fail(f"asked for {name}"))
    with pytest.raises(RegardError, match="not in the cache .*HF_HUB_OFFLINE is set"):
        hub.check_there("some/model")


def test_what_is_in_the_cache_is_not_asked_for(monkeypatch, tmp_path) -> None:
    _ask(monkeypatch, tmp_path, "http://127.0.0.1:1")
    place = tmp_path / "models--some--model"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    (place / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (place / "snapshots" / ("0" * 40) / "config.json").write_text("{}")
    hub.check_there("some/model")


@pytest.mark.parametrize("name", ["a b", "-a", "a--b", "ü", "a/b "])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(RegardError, match="it is no name on the hub"):
        hub.check_name(name)


def test_a_file_is_not_asked_for() -> None:
    with pytest.raises(RegardError, match="there is no such file"):
        hub.check_name("some/model.safetensors")


def test_the_client_names_its_errors_as_we_know_them() -> None:
    assert issubclass(errors.GatedRepoError, errors.RepositoryNotFoundError)  # so it is asked for first
