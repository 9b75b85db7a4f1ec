"""A hub name's files in the cache are checked as a folder's are."""

import json
from pathlib import Path

import huggingface_hub.constants
import pytest
import safetensors.torch
import torch
from transformers.utils import hub

from regard.errors import RegardError
from regard.model_files.hub_files import check_hub
from regard.model_files.weight_headers import INDEX, SINGLE, Held

NAME, REVISION = "someone/tiny", "0" * 40
CONFIG = {"model_type": "bert", "num_hidden_layers": 2, "num_attention_heads": 3}


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a name in the cache, with a config; what is not there is known not to be on the hub."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    home = tmp_path / "models--someone--tiny"
    folder = home / "snapshots" / REVISION
    for each in (home / "refs", folder, home / ".no_exist" / REVISION):
        each.mkdir(parents=True)
    (home / "refs" / "main").write_text(REVISION)
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def checked(snapshot: Path) -> Held | None:
    """What the name holds, where all that is not in the snapshot is known to be missing on the hub."""
    for name in (SINGLE, INDEX, "adapter_config.json"):
        marker = snapshot.parents[1] / ".no_exist" / REVISION / name
        marker.unlink(missing_ok=True)
        if not (snapshot / name).exists():
            marker.touch()
    return check_hub(NAME)


def weights(file: Path, **shapes: tuple[int, ...]) -> None:
    safetensors.torch.save_file({name: torch.zeros(shape) for name, shape in shapes.items()}, file)


def test_one_file_or_several_hold_the_same(snapshot: Path) -> None:
    weights(snapshot / SINGLE, a=(2, 3), b=(5,), c=(7, 1))
    assert checked(snapshot) == Held(3, 18)
    (snapshot / SINGLE).unlink()
    weights(snapshot / "1.safetensors", a=(2, 3))
    weights(snapshot / "2.safetensors", b=(5,), c=(7, 1))
    names = {"a": "1.safetensors", "b": "2.safetensors", "c": "2.safetensors"}
    (snapshot / INDEX).write_text(json.dumps({"weight_map": names}))
    assert checked(snapshot) == Held(3, 18)


def test_no_safetensors_is_not_known(snapshot: Path) -> None:
    assert checked(snapshot) is None


def refused(snapshot: Path, says: str) -> None:
    with pytest.raises(RegardError, match=says) as caught:
        checked(snapshot)
    assert "\n" not in str(caught.value)


def test_what_would_be_loaded_wrong(snapshot: Path) -> None:
    weights(snapshot / SINGLE, a=(2, 3))
    for changed, says in (
        ({"num_attention_heads": 0}, "'someone/tiny': config.json: num_attention_heads is 0, needed"),
        ({"num_hidden_layers": 201}, "num_hidden_layers is 201, its checkpoint holds 1 tensors"),
        ({"transformers_weights": "other.safetensors"}, "names weights of its own .transformers_weights."),
        ({"quantization_config": {"quant_method": "cake"}}, "names the method 'cake'"),
    ):
        (snapshot / "config.json").write_text(json.dumps(CONFIG | changed))
        refused(snapshot, says)
    (snapshot / "config.json").write_text(json.dumps(CONFIG))
    assert checked(snapshot) == Held(1, 6)
    (snapshot / SINGLE).write_bytes(b"cut")
    refused(snapshot, "is truncated or no safetensors file .it is no safetensors file.")
    (snapshot / "adapter_config.json").write_text("{}")
    refused(snapshot, "model 'someone/tiny' has an adapter beside it")


def test_an_index_that_names_something_else(snapshot: Path) -> None:
    (snapshot / INDEX).write_text(json.dumps({"weight_map": {"a": "pytorch_model.bin"}}))
    refused(snapshot, "tensor 'a' is in 'pytorch_model.bin', needed is a safetensors file")
