"""A store's manifest: written, read, and refused where it is none."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from regard.corpus.manifest import NAME, Manifest, ModelSummary, ShardSummary, absolute, read_manifest
from regard.corpus.settings import Settings
from regard.errors import RegardError
from tests.support.stores import change_manifest

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
    for later in ("given", "folder", "quarantine", "sha256"):
        del data[later]
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
    (tmp_path / NAME).write_text('{"format": 1}')
    with pytest.raises(RegardError, match="lacks or misnames an entry"):
        read_manifest(tmp_path)
    (tmp_path / NAME).write_text("{")
    with pytest.raises(RegardError, match="manifest .* cannot be read"):
        read_manifest(tmp_path)


SHARD = {"name": "s", "parts": 1, "rows": 7, "tokens": 9, "sha256": ""}
MODEL_ENTRY = {"name": "tiny", "source": "", "digest": "ab12", "layers": 3, "heads": 5, "width": 35}


@pytest.mark.parametrize(
    ("entry", "given"),
    [
        ("given", [1]), ("folder", 1), ("complete", "yes"), ("inputs", "a.txt"), ("environment", {"torch": 2}),
        ("counts", {"rows": "7"}), ("counts", []), ("columns", ["text"]), ("columns", [1, 2]), ("quarantine", None),
        ("layers", []), ("layers", ["2"]), ("layers", [2, 1]), ("layers", [3]), ("layers", [-1]), ("layers", None),
        ("model", {"name": 1}), ("model", 5), ("model", MODEL_ENTRY | {"width": "x"}),
        ("model", MODEL_ENTRY | {"width": 0}), ("model", MODEL_ENTRY | {"layers": 1e300}),
        ("model", MODEL_ENTRY | {"layers": True}), ("model", MODEL_ENTRY | {"more": 1}),
        ("shards", {}), ("shards", [5]), ("shards", [SHARD | {"name": 5}]), ("shards", [SHARD | {"name": ".."}]),
        ("shards", [SHARD | {"name": "a/b"}]), ("shards", [SHARD | {"name": "a\0b"}]), ("shards", [SHARD, SHARD]),
        ("shards", [SHARD | {"rows": -1}]), ("shards", [SHARD | {"rows": 10**40}]), ("shards", [SHARD | {"sha256": 1}]),
        ("settings", []), ("settings", {"where": "word"}), ("settings", {"where": ["word", [1]]}),
        ("settings", {"where": [1]}), ("settings", {"window": "x"}), ("settings", {"statistics": "no"}),
        ("settings", {"precision": 16}), ("closeness", []), ("closeness", {"states": 3}),
        ("settings", {"precision": "fp8"}), ("settings", {"dtype": "x" * 5000}),
        *(("model", MODEL_ENTRY | {size: huge}) for size in ("layers", "heads", "width") for huge in (10**9, 2**52)),
        ("model", MODEL_ENTRY | {"x" * 5000: 1}), ("model", MODEL_ENTRY | {"name": "\ud800"}),
        ("counts", {"x" * 5000: "7"}), ("layers", list(range(10**5))),
        *(("shards", [SHARD | {"name": name}]) for name in ("x" * 5000, "a\nb", "\x1b[31m", "\ud800", "...")),
    ],
)  # fmt: skip
def test_entries_of_other_types_are_refused(tmp_path: Path, entry: str, given: object) -> None:
    MADE.write(tmp_path)
    change_manifest(tmp_path, **{entry: given})
    with pytest.raises(RegardError, match="lacks or misnames an entry") as said:
        read_manifest(tmp_path)
    assert str(said.value).isprintable()
    assert len(str(said.value)) < 400 + len(str(tmp_path))


@pytest.mark.parametrize("number", ["1e999", "NaN", "9" * 5000])
def test_numbers_that_are_none_are_refused_in_one_line(tmp_path: Path, number: str) -> None:
    MADE.write(tmp_path)
    file = tmp_path / NAME
    file.write_text(file.read_text().replace('"layers": 3', f'"layers": {number}'))
    with pytest.raises(RegardError, match="manifest .* cannot be read") as said:
        read_manifest(tmp_path)
    assert str(said.value).isprintable()
    assert len(str(said.value)) < 400 + len(str(tmp_path))


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    MADE.write(tmp_path)
    file = tmp_path / NAME
    whole = file.read_bytes()
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            assert read_manifest(tmp_path) == MADE, place  # blanks between entries say nothing
        except RegardError:
            continue
