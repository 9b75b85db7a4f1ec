"""A store's manifest: written, read, and refused where it is none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from regard.corpus.manifest import NAME, Manifest, ModelSummary, ShardSummary, absolute, read_manifest
from regard.corpus.settings import Settings
from regard.errors import RegardError

MODEL = ModelSummary("tiny", "", "ab12", 3, 5, 35)
MADE = Manifest(
    MODEL, Settings().to_json(), {"torch": "2"}, ["a.txt"], [2], [ShardSummary("s", 1, 7, 9)], {"rows": 7}, True
)


def test_comes_back_as_it_was(tmp_path: Path) -> None:
    MADE.write(tmp_path)
    assert read_manifest(tmp_path) == MADE


def test_a_store_of_an_earlier_version_does_not_say_where_its_texts_are(tmp_path: Path) -> None:
    replace(MADE, inputs=["/a/b.txt"], given=["b.txt"], folder="/a").write(tmp_path)
    assert read_manifest(tmp_path).placed
    data = json.loads((tmp_path / NAME).read_text())
    del data["given"], data["folder"]
    (tmp_path / NAME).write_text(json.dumps(data | {"inputs": ["b.txt"]}))
    assert not read_manifest(tmp_path).placed
    assert read_manifest(tmp_path).inputs == ["b.txt"]


def test_inputs_are_made_absolute() -> None:
    assert absolute(["b", "../c/*.txt", "/d/", "-", "."], "/a/x") == ["/a/x/b", "/a/c/*.txt", "/d", "-", "/a/x"]


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="there is no such folder; `regard embed"):
        read_manifest(tmp_path / "none")
    with pytest.raises(RegardError, match=r"there is no manifest.json in it"):
        read_manifest(tmp_path)
    replace(MADE, format=7).write(tmp_path)
    with pytest.raises(RegardError, match="has format 7, this version of regard reads format 1"):
        read_manifest(tmp_path)
    for broken in (
        {"format": 1},
        json.loads((tmp_path / NAME).read_text()) | {"format": 1, "given": [1]},
        json.loads((tmp_path / NAME).read_text()) | {"format": 1, "model": {"name": 1}},
    ):
        (tmp_path / NAME).write_text(json.dumps(broken))
        with pytest.raises(RegardError, match="lacks or misnames an entry"):
            read_manifest(tmp_path)
    (tmp_path / NAME).write_text("{")
    with pytest.raises(RegardError, match="manifest .* cannot be read"):
        read_manifest(tmp_path)
