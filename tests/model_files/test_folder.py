"""Model folders and names on the hub are checked by their files, whatever those hold."""

import json
import os
import resource
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

import regard
from regard.errors import RegardError
from regard.model_files import folder as model_folder
from regard.model_files import size_limit
from regard.model_files.limits import INDEX, SINGLE, CheckpointSizes
from regard.model_files.size_limit import Budget
from tests.model_files import folders


def refused(source: Path | str, says: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    folders.refused(source, says)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500 * 1024  # KiB


def change(folder: Path, **entries: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | entries))


def test_pipes_in_the_place_of_files_and_of_our_own_folders(tiny: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.gguf")
    refused(tmp_path / "model.gguf", "isn't a regular file")
    refused(tmp_path, "isn't a regular file")
    (tmp_path / "model.gguf").unlink()
    os.mkfifo(tmp_path / "latest.json")
    refused(tmp_path, "it has no config.json")
    model = regard.load(regard.Transformer(regard.TransformerConfig(vocabulary=9, length=5, layers=1, d_model=8)))
    model.save(tmp_path / "ours")
    for name in ("tokenizer.json", "model.safetensors", "config.json"):
        (tmp_path / "ours" / name).unlink(missing_ok=True)
        os.mkfifo(tmp_path / "ours" / name)
        refused(tmp_path / "ours", f"{name}' cannot be read: it isn't a regular file")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
def test_nested_too_deep(tiny: Path, name: str) -> None:
    for content in ('{"a": ' + "[" * 10**5 + "]" * 10**5 + "}", "[" * 10**6):
        (tiny / name).write_text(content)
        refused(tiny, "nested deeper|tokenizer cannot be loaded|nested too deep")


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"num_hidden_layers": 10**7}, "its config asks for more than its checkpoint holds"),
        ({"num_hidden_layers": 200}, "its config asks for more than its checkpoint holds, 39 tensors of 2.8 MiB"),
        ({"hidden_size": 10**9}, "its config asks for more than its checkpoint holds"),
        ({"intermediate_size": 10**30}, "cannot be loaded"),
        ({"vocab_size": 10**12}, "its config asks for more than its checkpoint holds"),
        ({"max_position_embeddings": 10**9}, "its config asks for more than its checkpoint holds"),
        ({"num_attention_heads": 0}, "cannot be loaded"),
        ({"hidden_size": "24"}, "cannot be loaded: Validation error for field 'hidden_size'"),
        ({"quantization_config": {"quant_method": "nope", "bits": 4}}, "names the method 'nope', which .* support"),
        ({"quantization_config": {}}, "names the method None, which the installed transformers doesn't support"),
        ({"quantization_config": "int4"}, "quantization_config is 'int4', expected an object"),
        ({"quantization_config": {"quant_method": "fp8"}}, "'fp8', but no tensor of its checkpoint is quantised"),
        ({"quantization_config": {"load_in_4bit": True}}, "'bitsandbytes', but no tensor of its checkpoint"),
        ({"text_config": {"quantization_config": {"quant_method": "gptq"}}}, "'gptq', but no tensor of its"),
    ],
    ids=str,
)
def test_what_a_config_asks_for(tiny: Path, entries: dict[str, object], says: str) -> None:
    change(tiny, **entries)
    refused(tiny, says)


def test_a_config_names_no_code_to_compute_attention_with(tiny: Path) -> None:
    """Names of kernels on the hub are not followed: attention is computed here."""
    for entry in ("attn_implementation", "_attn_implementation", "experts_implementation"):
        change(tiny, **{entry: "someone/kernel"})
        assert len(regard.load(tiny, device="cpu").trace("a bank").attention) == 2


def test_an_adapter_is_not_passed_over(tiny: Path) -> None:
    (tiny / "adapter_config.json").write_text('{"base_model_name_or_path": "someone/else"}')
    refused(tiny, "also has an adapter")


def test_a_distributed_checkpoint(tiny: Path) -> None:
    (tiny / "shard-00001-model-00001-of-00002.safetensors").write_bytes(b"")
    refused(tiny, "weights are a distributed checkpoint")


def test_a_model_that_does_not_fit_is_refused_before_it_is_read(tiny: Path, monkeypatch) -> None:
    monkeypatch.setattr(size_limit, "nbytes", lambda held, dtype: 1 << 50)
    refused(tiny, r"in float32, needs 1.0 PiB of memory, .* are free: take a smaller one, or free memory")


def test_our_own_config_asks_for_what_its_weights_hold(tmp_path: Path) -> None:
    import torch

    model = regard.load(regard.Transformer(regard.TransformerConfig(vocabulary=9, length=5, layers=1, d_model=8)))
    model.save(tmp_path)
    state = torch.get_rng_state()
    assert len(regard.load(tmp_path, device="cpu").trace(ids=[1, 2]).attention) == 1
    assert torch.equal(torch.get_rng_state(), state)
    for entries, says in (
        ({"layers": 10**7}, "its config asks for more than its checkpoint holds"),
        ({"d_model": 1 << 40}, "its config asks for more than its checkpoint holds"),
        ({"vocabulary": 1 << 50}, "its config asks for more than its checkpoint holds"),
    ):
        content = (tmp_path / "config.json").read_text()
        change(tmp_path, **entries)
        refused(tmp_path, says)
        (tmp_path / "config.json").write_text(content)


def test_a_budget_counts_what_is_made_in_its_thread_alone() -> None:
    import torch

    with Budget(CheckpointSizes(1, 10), "it"), torch.device("meta"):
        torch.nn.Linear(1000, 1000)
        with pytest.raises(regard.RegardError, match="model 'it': its config asks for more"):
            torch.nn.Linear(100_000, 1000)
    torch.nn.Linear(100_000, 1000, device="meta")


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
        model_folder.check_available(name)


def test_what_the_hub_has(answering) -> None:
    model_folder.check_available("good/model")


def test_nobody_answers(monkeypatch, tmp_path) -> None:
    server = HTTPServer(("127.0.0.1", 0), Hub)
    server.server_close()  # its port refuses now
    _ask(monkeypatch, tmp_path, f"http://127.0.0.1:{server.server_port}")
    with pytest.raises(RegardError, match="the hub http.* says: "):
        model_folder.check_available("some/model")


def test_the_hub_is_not_asked(monkeypatch, tmp_path) -> None:
    _ask(monkeypatch, tmp_path, "http://127.0.0.1:1")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(RegardError, match="not in the cache .*HF_HUB_OFFLINE is set"):
        model_folder.check_available("some/model")


def test_what_is_in_the_cache_is_not_asked_for(monkeypatch, tmp_path) -> None:
    _ask(monkeypatch, tmp_path, "http://127.0.0.1:1")
    place = tmp_path / "models--some--model"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("0" * 40)
    (place / "snapshots" / ("0" * 40)).mkdir(parents=True)
    (place / "snapshots" / ("0" * 40) / "config.json").write_text("{}")
    model_folder.check_available("some/model")


@pytest.mark.parametrize("name", ["a b", "-a", "a--b", "ü", "a/b "])
def test_names_that_cannot_be(name: str) -> None:
    with pytest.raises(RegardError, match="it isn't a hub name"):
        model_folder.check_hub_name(name)


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
    return model_folder.check_hub_files(NAME)


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


def snapshot_refused(snapshot: Path, says: str) -> None:
    with pytest.raises(RegardError, match=says) as caught:
        checked(snapshot)
    assert "\n" not in str(caught.value)


def test_what_would_be_loaded_wrong(snapshot: Path) -> None:
    weights(snapshot / SINGLE, a=(2, 3))
    for changed, says in (
        ({"transformers_weights": "other.safetensors"}, "names other weights .transformers_weights."),
        ({"quantization_config": {"quant_method": "cake"}}, "names the method 'cake'"),
    ):
        (snapshot / "config.json").write_text(json.dumps(CONFIG | changed))
        snapshot_refused(snapshot, says)
    (snapshot / "config.json").write_text(json.dumps(CONFIG))
    assert checked(snapshot) == CheckpointSizes(1, 6)
    (snapshot / SINGLE).write_bytes(b"cut")
    snapshot_refused(snapshot, "is truncated or not a safetensors file")
    (snapshot / "adapter_config.json").write_text("{}")
    snapshot_refused(snapshot, "model 'someone/tiny' also has an adapter")


def test_an_index_that_names_something_else(snapshot: Path) -> None:
    (snapshot / INDEX).write_text(json.dumps({"weight_map": {"a": "pytorch_model.bin"}}))
    snapshot_refused(snapshot, "tensor 'a' is in 'pytorch_model.bin', expected a safetensors file")
