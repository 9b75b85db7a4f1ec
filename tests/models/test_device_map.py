"""A model whose weights are spread over the disk gives what it gives whole; wrong maps are refused in one line."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import regard
from regard.model_files.folder import default_folder
from tests.capture.test_families import DECODER, DECODERS, tiny
from tests.support import RIVER, own_models

pytest.importorskip("accelerate", reason="the package accelerate is not installed (extra distributed)")
pytestmark = pytest.mark.filterwarnings("ignore")  # of accelerate's own
IDS = [3, 5, 7, 11, 2]
REST = dict.fromkeys(("model.embed_tokens", "model.layers.0", "model.norm", "model.rotary_emb", "lm_head"), "cpu")
ON_DISK = REST | {"model.layers.1": "disk"}  # layer 1, which accelerate fetches for the time that it runs


@pytest.fixture
def llama(tmp_path: Path) -> Path:
    tiny("llama", DECODERS["llama"], language=True).save_pretrained(tmp_path / "llama")
    return tmp_path / "llama"


@pytest.mark.parametrize(("as_object", "folder"), [(False, "disk"), (True, "disk"), (False, None)])
def test_in_pieces_as_whole(as_object: bool, folder: str | None, llama: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"device_map": ON_DISK, "offload_folder": folder and tmp_path / folder}
    if as_object:
        pieces = regard.load(transformers.AutoModelForCausalLM.from_pretrained(llama, **options))
    else:
        pieces = regard.load(llama, **options)
        assert pieces.notes == ("Weights are spread by accelerate: 5 modules on cpu, 1 module on disk.",)
    assert {each.device.type for each in pieces.model.parameters()} == {"cpu", "meta"}
    ours, theirs = pieces.trace(ids=IDS), regard.load(llama, device="cpu").trace(ids=IDS)
    assert torch.equal(ours.logits, theirs.logits)
    assert all(torch.equal(a.dense(), b.dense()) for a, b in zip(ours.attention, theirs.attention, strict=True))


def test_a_map_by_itself(llama: Path) -> None:
    """On a machine without a GPU all of it goes to the CPU, in float32."""
    opened = regard.load(llama, device_map="auto", dtype="bfloat16")
    assert {(each.is_meta, each.dtype) for each in opened.model.parameters()} == {(False, torch.bfloat16)}
    assert opened.notes[0].startswith("Weights are spread by accelerate: 1 module on")


def test_what_is_asked_of_a_real_model_in_pieces(tmp_path: Path, minilm: Any) -> None:
    """Its checks pass, but for an ablated head if the output projection is on disk."""
    places = {"embeddings": "cpu", "encoder": "disk", "pooler": "cpu"}
    pieces = regard.load(default_folder(), device_map=places, offload_folder=tmp_path)
    assert torch.equal(pieces.trace(RIVER).last_hidden_state, minilm.trace(RIVER).last_hidden_state)
    checked = regard.check(pieces, [RIVER])
    assert checked.holds
    passed = {each.check for each in checked.of("passed")}
    assert passed >= {"attention weights", "hidden states", "statistics", "contributions"}


def test_maps_that_cannot_be(llama: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = {"offload_folder": tmp_path / "disk"}
    whole_on_disk = disk | {"device_map": dict.fromkeys(ON_DISK, "disk")}
    for source, options, says in (
        (llama, {"device_map": "all"}, "cannot be loaded: .*the value needs to be a device name .* but found all"),
        (llama, {"device_map": {}}, r"device_map: got \{\}, expected 'auto'"),
        (llama, disk, "device_map: got None, expected 'auto'"),
        (llama, {"device_map": "auto", "device": "cpu"}, "without device and adapter"),
        (llama, {"device_map": "auto", "adapter": tmp_path}, "without device and adapter"),
        (llama, {"device_map": {"": "cpu", "layers.7": "disk"}}, "has no module 'layers.7'"),
        (llama, {"device_map": {"": "gpu"}}, "cannot be loaded: .*gpu"),
        (llama, whole_on_disk, "its first weights, 'model.embed_tokens.weight', are on disk or were never filled"),
        (tiny("bert", DECODER), {"device_map": "auto"}, "device_map works for a folder or hub name"),
        (own_models.opened("bert").model, {"device_map": "auto"}, "device_map works for a folder or hub name"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            regard.load(source, **options)
    with torch.device("meta"):
        empty = transformers.BertModel(transformers.BertConfig(hidden_size=24, num_attention_heads=3))
    with pytest.raises(regard.RegardError, match="its first weights, .* are on disk or were never filled"):
        regard.load(empty)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(regard.RegardError, match=r"needs accelerate: pip install 'regard\[distributed\]'"):
        regard.load(llama, device_map="auto")
