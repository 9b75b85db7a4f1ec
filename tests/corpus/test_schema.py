"""A store's manifest, and the columns of its tables as the documentation names them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from regard.corpus import schema
from regard.corpus.schema import NAME, REMOVED, Manifest, ModelSummary, ShardSummary, absolute_inputs, read_manifest
from regard.corpus.settings import Settings
from regard.corpus.writing.attention_sums import SUMS
from regard.errors import RegardError
from tests.support import ROOT


def test_the_page_names_every_column() -> None:
    page = (ROOT / "docs" / "commands" / "embed.md").read_text("utf-8")
    columns = schema.texts().names + schema.rows(6, statistics=True, sources=True).names + schema.spans().names
    told = set(re.findall(r"\w+", page))
    assert set(columns) <= told


def test_sizes_of_lists() -> None:
    fields = schema.rows(7, statistics=True, sources=True)
    assert [fields.field(name).type.list_size for name in schema.STATISTICS] == [7] * 4
    assert [fields.field(name).type.list_size for name in schema.SOURCES] == [7 * schema.TOP] * 3
    assert not set(schema.STATISTICS) & set(schema.rows(7, statistics=False, sources=False).names)
    assert schema.heads().names == ["layer", "head", *SUMS]
    assert schema.quarantine().names == ["source", "line", "reason"]


MODEL = ModelSummary("tiny", "", "ab12", 3, 5, 35)
MADE = Manifest(
    MODEL, Settings().to_json(), {"torch": "2"}, ["a.txt"], [2], [ShardSummary("s", 1, 7, 9, "cd34")], {"rows": 7}, True
)


def test_comes_back_as_it_was(tmp_path: Path) -> None:
    MADE.write(tmp_path)
    assert read_manifest(tmp_path) == MADE


@pytest.mark.parametrize(("name", "value"), list(REMOVED.items()))
def test_an_index_of_a_removed_setting_says_so(tmp_path: Path, name: str, value: str) -> None:
    replace(MADE, settings=Settings().to_json() | {name: value}).write(tmp_path)
    with pytest.raises(RegardError, match=f"was made with --{name} {value}, which this version .* again with"):
        read_manifest(tmp_path)


def test_inputs_are_made_absolute() -> None:
    assert replace(MADE, given=["b.txt"], folder="/a").inputs == ["/a/b.txt"]
    assert absolute_inputs(["b", "../c/*.txt", "/d/", "-", "."], "/a/x") == ["/a/x/b", "/a/c/*.txt", "/d", "-", "/a/x"]


def test_what_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="there is no such folder; `regard embed"):
        read_manifest(tmp_path / "none")
    with pytest.raises(RegardError, match=r"there is no manifest.json in it"):
        read_manifest(tmp_path)
    replace(MADE, format=7).write(tmp_path)
    with pytest.raises(RegardError, match="has format 7, this version of regard reads format 2"):
        read_manifest(tmp_path)
    (tmp_path / NAME).write_text('{"format": 2}')
    with pytest.raises(RegardError, match="is damaged or was changed"):
        read_manifest(tmp_path)
    for content in ("{", "[]", "5", "\xff"):
        (tmp_path / NAME).write_text(content, "latin-1")
        with pytest.raises(RegardError, match="manifest .* cannot be read"):
            read_manifest(tmp_path)


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
