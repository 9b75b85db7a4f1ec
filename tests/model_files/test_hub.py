"""Names on the hub: a server of our own answers as the hub would, or nobody does; files in the cache are checked."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import huggingface_hub.constants as constants
import pytest
import safetensors.torch
import torch
from transformers.utils import hub as transformers_hub

from regard.errors import RegardError
from regard.model_files import hub
from regard.model_files.weight_headers import INDEX, SINGLE, CheckpointSizes

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
        ("absent/model", "no model of that name, or one that needs a login"),
        ("private/model", "401 Unauthorized"),
        ("gated/model", "or your agreement"),
        ("bare/model", "no config.json of it"),
        ("ill/model", "503"),
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
    with pytest.raises(RegardError, match="the hub http.* says: "):
        hub.check_there("some/model")


def test_the_hub_is_not_asked(monkeypatch, tmp_path) -> None:
    _ask(monkeypatch, tmp_path, "http://127.0.0.1:1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
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
        hub.check_hub_name(name)


NAME, REVISION = "someone/tiny", "0" * 40
CONFIG = {"model_type": "bert", "num_hidden_layers": 2, "num_attention_heads": 3}


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a name in the cache, with a config; what is not there is known not to be on the hub."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(transformers_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--someone--tiny"
    folder = home / "snapshots" / REVISION
    for each in (home / "refs", folder, home / ".no_exist" / REVISION):
        each.mkdir(parents=True)
    (home / "refs" / "main").write_text(REVISION)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def checked(snapshot: Path) -> CheckpointSizes | None:
    """What the name holds, where all that is not in the snapshot is known to be missing on the hub."""
    for name in (SINGLE, INDEX, "adapter_config.json"):
        marker = snapshot.parents[1] / ".no_exist" / REVISION / name
        marker.unlink(missing_ok=True)
        if not (snapshot / name).exists():
            marker.touch()
    return hub.check_hub(NAME)


def weights(file: Path, **shapes: tuple[int, ...]) -> None:
    safetensors.torch.save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, file)


def test_one_file_or_several_hold_the_same(snapshot: Path) -> None:
    weights(snapshot / SINGLE, a=(2, 3), b=(5,), c=(7, 1))
    assert checked(snapshot) == CheckpointSizes(3, 18)
    (snapshot / SINGLE).unlink()
    weights(snapshot / "1.safetensors", a=(2, 3))
    weights(snapshot / "2.safetensors", b=(5,), c=(7, 1))
    names = {"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"}
    (snapshot / INDEX).write_text(json.dumps({"weight_map": names}))
    assert checked(snapshot) == CheckpointSizes(3, 18)


def test_no_safetensors_is_not_known(snapshot: Path) -> None:
    assert checked(snapshot) is None


def refused(snapshot: Path, says: str) -> None:
    with pytest.raises(RegardError, match=says) as caught:
        checked(snapshot)
    assert "\n" not in str(caught.value)


def test_what_would_be_loaded_wrong(snapshot: Path) -> None:
    weights(snapshot / SINGLE, a=(2, 3))
    for changed, says in (
        ({"num_attention_heads": 0}, "'someone/tiny': config.json: num_attention_heads is 0, needs"),
        ({"num_hidden_layers": 201}, "num_hidden_layers is 201, its checkpoint holds 1 tensors"),
        ({"transformers_weights": "other.safetensors"}, "names weights of its own .transformers_weights."),
        ({"quantization_config": {"quant_method": "cake"}}, "names the method 'cake'"),
    ):
        (snapshot / "config.json").write_text(json.dumps(CONFIG | changed))
        refused(snapshot, says)
    (snapshot / "config.json").write_text(json.dumps(CONFIG))
    assert checked(snapshot) == CheckpointSizes(1, 6)
    (snapshot / SINGLE).write_bytes(b"cut")
    refused(snapshot, "is truncated or no safetensors file")
    (snapshot / "adapter_config.json").write_text("{}")
    refused(snapshot, "model 'someone/tiny' has an adapter beside it")


def test_an_index_that_names_something_else(snapshot: Path) -> None:
    (snapshot / INDEX).write_text(json.dumps({"weight_map": {"a": "pytorch_model.bin"}}))
    refused(snapshot, "tensor 'a' is in 'pytorch_model.bin', needs a safetensors file")
