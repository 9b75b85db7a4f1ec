"""A store goes on with what it was begun with alone, and says where its texts are."""

from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from regard.attention.kernels import matmul
from regard.corpus.manifest import NAME, read_manifest
from regard.corpus.settings import Where
from regard.errors import RegardError
from tests.corpus.test_embed_texts import SMALL, documents_in, made, texts, texts_in, tiny
from tests.support.corpora import store_digest
from tests.support.stores import change_manifest

__all__ = ["texts", "tiny"]  # fixtures


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"dtype": "float32"}, "setting dtype float16, given is float32"),
        ({"shard": 701}, "setting shard 700, given is 701"),
        ({"statistics": False}, "setting statistics True, given is False"),
        ({"layers": (0,)}, r"setting layers None, given is \[0\]"),
        ({"where": Where("word", ("whale",))}, r"setting where None, given is \['word', \['whale'\]\]"),
    ],
)
def test_other_settings_are_refused(texts: str, tiny: Any, changed: dict[str, Any], said: str) -> None:
    made(texts, "store", tiny)
    whole = store_digest(Path("store"))
    with pytest.raises(RegardError, match=f"'.*store' was made with {said}: give another --out"):
        made(texts, "store", tiny, replace(SMALL, **changed))
    assert store_digest(Path("store")) == whole


def test_other_paths_models_versions_and_formats_are_refused(texts: str, tiny: Any, minilm: Any) -> None:
    made(texts, "store", tiny)
    whole = store_digest(Path("store"))
    with pytest.raises(RegardError, match=r"made with paths \['/.*/texts'\], given is \['/.*/texts/0001.txt'\]"):
        made("texts/0001.txt", "store", tiny)
    with pytest.raises(RegardError, match="made with model [0-9a-f]{64}, given is [0-9a-f]{64}"):
        made(texts, "store", minilm)
    path = Path("store", NAME)
    change_manifest(Path("store"), environment=change_manifest(Path("store"))["environment"] | {"torch": "1.0"})
    with pytest.raises(RegardError, match="the store was made with torch 1.0, here is "):
        made(texts, "store", tiny)
    change_manifest(Path("store"), format=99)
    with pytest.raises(RegardError, match="has format 99, this version of regard reads format 2"):
        made(texts, "store", tiny)
    path.write_text("{")
    with pytest.raises(RegardError, match=NAME):
        made(texts, "store", tiny)
    assert whole != store_digest(Path("store"))  # by the edits above alone
    assert len(list(Path("store/shards").iterdir())) > 3


def test_a_store_goes_on_with_its_own_products_alone(texts: str, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_PRODUCT", "blas")
    made(texts, "store", tiny)
    whole = store_digest(Path("store"))
    assert read_manifest(Path("store")).environment["tiles"] == "blas"
    if matmul.onednn_works():
        monkeypatch.setenv("REGARD_PRODUCT", "onednn")
        with pytest.raises(RegardError, match="product blas, .*; REGARD_PRODUCT=blas goes on"):
            made(texts, "store", tiny)
    monkeypatch.setenv("REGARD_PRODUCT", "blas")
    made(texts, "store", tiny)
    assert store_digest(Path("store")) == whole


def test_models_that_cannot_read_a_corpus(texts: str, tiny: Any) -> None:
    with mock.patch.object(tiny, "tokenizer", None), pytest.raises(RegardError, match="has no tokenizer"):
        made(texts, "store", tiny)
    assert not Path("store").exists()
    with mock.patch.object(tiny, "pairs", True), pytest.raises(RegardError, match="is an encoder-decoder"):
        made(texts, "store", tiny)
    assert not Path("store").exists()


def test_the_same_line_in_another_folder_is_refused(tmp_path: Path, tiny: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """81 documents became 1, in silence: another folder's `notes` is not that of the store."""
    texts_in(tmp_path / "a", 5, 0)
    texts_in(tmp_path / "b", 1, 1)
    monkeypatch.chdir(tmp_path / "a")
    made("notes", "../store", tiny)
    whole = store_digest(Path("../store"))
    monkeypatch.chdir(tmp_path / "b")
    said = rf"made with paths \['{tmp_path}/a/notes'\], given is \['{tmp_path}/b/notes'\]"
    with pytest.raises(RegardError, match=said):
        made("notes", "../store", tiny)
    assert store_digest(Path("../store")) == whole
    for given in (str(tmp_path / "a" / "notes"), "../a/notes/"):  # however they are named
        report = made(given, "../store", tiny)
        assert (report.built, report.counts["documents"], report.notes) == (0, 5, ())
    assert store_digest(Path("../store")) == whole
    assert documents_in("../store") == [f"notes/{n:04}.txt" for n in range(5)]
