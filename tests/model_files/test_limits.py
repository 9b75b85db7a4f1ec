"""Weights are read from safetensors in their folder alone, and headers that hold none are refused."""

import json
import shutil
import struct
from pathlib import Path

import pytest
import safetensors.torch
import torch

import regard
from regard.model_files.limits import INDEX, SINGLE, read_sizes
from tests.model_files.folders import refused


def shard(folder: Path, names: tuple[str, str] = ("a.safetensors", "b.safetensors")) -> list[str]:
    """Take a folder's weights apart into two files and an index."""
    tensors = safetensors.torch.load_file(folder / SINGLE)
    (folder / SINGLE).unlink()
    keys = sorted(tensors)
    for n, name in enumerate(names):
        safetensors.torch.save_file({key: tensors[key] for key in keys[n::2]}, folder / name, {"format": "pt"})
    index(folder, {key: names[n % 2] for n, key in enumerate(keys)})
    return keys


def index(folder: Path, named: object) -> None:
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 1}, "weight_map": named}))


def header(file: Path, content: bytes, data: bytes = b"") -> None:
    file.write_bytes(struct.pack("<Q", len(content)) + content + data)


def test_weights_in_several_files(tiny: Path) -> None:
    expected = regard.load(tiny, device="cpu").trace("a bank").last_hidden_state
    shard(tiny)
    assert torch.equal(regard.load(tiny, device="cpu").trace("a bank").last_hidden_state, expected)


def test_pickles_that_an_index_names_are_not_opened(tiny: Path) -> None:
    keys = shard(tiny)
    marker = tiny / "ran"

    class Evil:
        def __reduce__(self):
            return (Path.touch, (marker,))

    torch.save({"x": Evil()}, tiny / "pytorch_model.bin")
    for name in ("pytorch_model.bin", "a.safetensors.bin", "a.pt", 7, None):
        index(tiny, dict.fromkeys(keys, name))
        refused(tiny, "expected a safetensors file")
    for entry in ("adapter_model.bin", "pytorch_model.bin", 7, ["a.safetensors"]):
        config = json.loads((tiny / "config.json").read_text())
        (tiny / "config.json").write_text(json.dumps(config | {"transformers_weights": entry}))
        refused(tiny, "transformers_weights is .*, expected the name of a safetensors file")
    assert not marker.exists()


def test_only_pickles(tiny: Path) -> None:
    (tiny / SINGLE).unlink()
    (tiny / "pytorch_model.bin.index.json").write_text("{}")
    (tiny / "pytorch_model-00001-of-00002.bin").write_bytes(b"")
    refused(tiny, r"the only weights are pickled \(pytorch_model-00001-of-00002.bin\)")


def test_an_index_stays_in_its_folder(tiny: Path, original: Path) -> None:
    keys = shard(tiny)
    shutil.copytree(original, tiny.parent / "other")
    inside = tiny / "inside"
    inside.mkdir()
    shutil.copy(original / SINGLE, inside)
    for name in ("../other/model.safetensors", str(original / SINGLE), "inside/model.safetensors",
                 "..\\other\\model.safetensors", "C:model.safetensors", ".safetensors", "a\0.safetensors"):  # fmt: skip
        index(tiny, dict.fromkeys(keys, name))
        refused(tiny, "expected the name of a file in the folder")
    index(tiny, dict.fromkeys(keys, "nowhere.safetensors"))
    refused(tiny, "nowhere.safetensors' cannot be read: No such file")
    (tiny / "nowhere.safetensors").mkdir()
    refused(tiny, "nowhere.safetensors' cannot be read: it isn't")


@pytest.mark.parametrize("content", ["", "[]", "{", "{}", '{"weight_map": []}', '{"weight_map": {}}', "[" * 10**6])
def test_an_index_that_is_none(tiny: Path, content: str) -> None:
    (tiny / SINGLE).unlink()
    (tiny / INDEX).write_text(content)
    refused(tiny, f"{INDEX}'")


def test_links(tiny: Path) -> None:
    """Weights may be anywhere else, as those of a hub cache are."""
    (tiny / SINGLE).rename(tiny.parent / "whole.safetensors")
    (tiny / SINGLE).symlink_to("../whole.safetensors")
    linked = tiny.parent / "linked"
    linked.symlink_to(tiny)
    assert len(regard.load(linked, device="cpu").trace("a bank").attention) == 2
    (tiny / SINGLE).unlink()
    (tiny / SINGLE).symlink_to("nowhere")
    refused(tiny, "cannot be read: No such file")


def test_a_hub_name_in_the_cache(tiny: Path, original: Path, tmp_path: Path, monkeypatch) -> None:
    """What a hub name's cached index names is looked at as a folder's is."""
    import huggingface_hub.constants
    from transformers.utils import hub

    cache = tmp_path / "hub"
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(cache))
    home = cache / "models--someone--tiny"
    (home / "refs").mkdir(parents=True)
    (home / "refs" / "main").write_text("0" * 40)
    folder = home / "snapshots" / ("0" * 40)
    shutil.copytree(original, folder)
    assert len(regard.load("someone/tiny", device="cpu").trace("a bank").attention) == 2
    keys = shard(folder)
    assert len(regard.load("someone/tiny", device="cpu").trace("a bank").attention) == 2
    index(folder, dict.fromkeys(keys, "a.bin"))
    with pytest.raises(regard.RegardError, match="expected a safetensors file"):
        regard.load("someone/tiny", device="cpu")


def test_what_is_held(original: Path) -> None:
    tensors = safetensors.torch.load_file(original / SINGLE)
    found = read_sizes([original / SINGLE])
    assert (found.tensors, found.numbers) == (len(tensors), sum(t.numel() for t in tensors.values()))
    assert found.plain


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"x" * 50, "invalid JSON in header"),
        (b'{"a":' * 10**6, "invalid JSON in header"),
        (b'{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', "incomplete metadata"),
        (b'{"a": {"dtype": "F32", "shape": [10000000000], "data_offsets": [0, 4]}}', "invalid shape"),
    ],
    ids=range(4),
)
def test_headers_that_are_none(tiny: Path, content: bytes, says: str) -> None:
    header(tiny / SINGLE, content, b"\0" * 4)
    refused(tiny, f"is truncated or not a safetensors file .*{says}")
