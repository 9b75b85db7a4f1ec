"""A converted model is kept in the user's cache, whole, and made again where what is there is not it."""

from pathlib import Path

import pytest
import torch

from regard.corpus.writing import converted_models, openvino_states
from regard.corpus.writing.cut_windows import window_size
from regard.models.model import Model
from tests.corpus.writing.test_openvino_states import VECTORS, bert, needs_openvino, vectors_of, windows_of

__all__ = ["bert"]  # a fixture


@needs_openvino
def test_a_converted_model_is_kept_and_made_again_where_it_is_damaged(
    bert: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(converted_models, "converted_models_folder", lambda: tmp_path / "kept")
    windows, size, made = windows_of(bert), window_size(bert, VECTORS), []
    convert = openvino_states._converted
    monkeypatch.setattr(openvino_states, "_converted", lambda *given, **more: made.append(1) or convert(*given, **more))

    def read() -> dict[int, torch.Tensor]:
        return vectors_of(openvino_states.openvino_states(bert, [1], size, digest="d")(windows))

    first, second = read(), read()
    assert made == [1]
    assert all(torch.equal(first[number], second[number]) for number in first)
    (file,) = (tmp_path / "kept").glob("*/model.bin")
    assert sorted(path.name for path in file.parent.iterdir()) == ["model.bin", "model.xml", "sha256.txt"]
    whole = file.read_bytes()
    file.write_bytes(whole[:999] + bytes([whole[999] ^ 1]) + whole[1000:])  # one bit, of a word that is seldom read
    third = read()
    assert made == [1, 1]
    assert file.read_bytes() == whole
    file.with_name("model.xml").write_text("<net")
    assert all(torch.equal(first[number], each[number]) for number in first for each in (third, read()))
    assert made == [1, 1, 1]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == [file.parent.name]


@needs_openvino
def test_a_cache_that_cannot_be_written_keeps_nothing(
    bert: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").write_text("a file")
    monkeypatch.setattr(converted_models, "converted_models_folder", lambda: tmp_path / "kept")
    assert list(openvino_states.openvino_states(bert, [1], window_size(bert, VECTORS), digest="d")(windows_of(bert)))


def test_what_a_conversion_depends_on_names_it(minilm: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converted_models, "version", lambda package: "1")
    named = {
        converted_models.converted_model_file(minilm, digest, layers, segments=segments, masked=masked)
        for digest in ("a", "b") for layers in ([5], [4, 5]) for segments in (True, False) for masked in (True, False)
    }  # fmt: skip
    assert len(named) == 16
    monkeypatch.setattr(converted_models, "version", lambda package: "2")
    assert converted_models.converted_model_file(minilm, "a", [5], segments=True, masked=True) not in named
    assert {file.parent.parent for file in named} == {converted_models.converted_models_folder()}
