"""What the name of a model stands for: one answer, for loading and for sizes."""

from pathlib import Path

import pytest

from regard.errors import RegardError
from regard.model_files import hub
from regard.model_files.locate import locate_model_files


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names that the hub was asked for."""
    names: list[str] = []
    monkeypatch.setattr(hub, "check_there", names.append)
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
    with pytest.raises(RegardError, match="holds 2 GGUF files .a.gguf, b.gguf.: name the one that is meant"):
        locate_model_files(tmp_path)
    weights.write_bytes(b"")
    assert locate_model_files(tmp_path) == tmp_path


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("", "given an empty name"),
        (" ", "given an empty name"),
        ("none.gguf", "model 'none.gguf': there is no such file"),
        ("none.safetensors", "there is no such file"),
        ("./none", "there is no such folder"),
        (Path("none"), "there is no such folder"),
        ("text.txt", "model 'text.txt' is a file: needs a model folder, a GGUF file or a hub name"),
        ("no such", "there is no such folder, and it is no name on the hub"),
    ],
)
def test_what_stands_for_nothing(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch, source: str | Path, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("a text")
    with pytest.raises(RegardError, match=says):
        locate_model_files(source)
    assert asked == []
