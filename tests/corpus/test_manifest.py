"""A store's manifest: written, read, and refused where it is none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from regard.corpus.manifest import NAME, Manifest, ModelSummary, ShardSummary, read_manifest
from regard.corpus.settings import Settings
from regard.errors import RegardError

MODEL = ModelSummary("tiny", "", "ab12", 3, 5, 35)
MADE = Manifest(
    MODEL, Settings().to_json(), {"torch": "2"}, ["a.txt"], [2], [ShardSummary("s", 1, 7, 9)], {"rows": 7}, True
)


def test_comes_back_as_it_was(tmp_path: Path) -> None:
    MADE.write(tmp_path)
    assert read_manifest(tmp_path) == MADE


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="there is no such folder; `regard embed"):
        read_manifest(tmp_path / "none")
    with pytest.raises(RegardError, match=r"there is no manifest.json in it"):
        read_manifest(tmp_path)
    replace(MADE, format=7).write(tmp_path)
    with pytest.raises(RegardError, match="has format 7, this version of regard reads format 1"):
        read_manifest(tmp_path)
    for broken in ({"format": 1}, json.loads((tmp_path / NAME).read_text()) | {"format": 1, "model": {"name": 1}}):
        (tmp_path / NAME).write_text(json.dumps(broken))
        with pytest.raises(RegardError, match="lacks or misnames an entry"):
            read_manifest(tmp_path)
    (tmp_path / NAME).write_text("{")
    with pytest.raises(RegardError, match="manifest .* cannot be read"):
        read_manifest(tmp_path)
