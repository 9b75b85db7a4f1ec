"""JSON within limits: what is no JSON, or too much of it, is refused in one line."""

import json
import math
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.json_files import (
    expect_type,
    parse_json,
    read_json,
    short,
    write_json,
)


def unread(path: Path, says: str, **options) -> None:
    with pytest.raises(RegardError, match=says) as caught:
        read_json(path, "the model's", **options)
    assert str(caught.value).startswith(f"the model's {str(path)!r}")
    assert "\n" not in str(caught.value)


def test_json_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text('{"a": [1, 2.5, null], "ü": {"b": true}}', encoding="utf-8")
    assert read_json(file) == {"a": [1, 2.5, None], "ü": {"b": True}}
    (tmp_path / "link.json").symlink_to(file)
    assert read_json(tmp_path / "link.json")["ü"] == {"b": True}
    file.write_text('{"limits": [0.0, Infinity]}')
    assert read_json(file) == {"limits": [0.0, float("inf")]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{ broken", "cannot be read: Expecting property name"),
        (b"", "cannot be read: Expecting value"),
        (b"[1]", "its content is .1., needs names"),
        (b'{"a": "\xff"}', "cannot be read: 'utf-8' codec can't decode byte 0xff"),
        (b"[" * 10**7, "nested too deep"),
    ],
    ids=lambda value: value[:12].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_json_that_is_none(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    unread(file, says)


def test_a_file_beyond_its_limit(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"a": "x" * 100}))
    unread(file, "it has 109 bytes, 108 are the most", most=108)
    with file.open("r+b") as opened:
        opened.truncate(1 << 40)  # holes: nothing is stored, and nothing is read
    unread(file, "1,099,511,627,776 bytes")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**80), 2**80)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(VALUES)
def test_what_was_written_is_read(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value, ensure_ascii=True).encode()) == value


def test_json_is_written_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"ü": 0.1 + 0.2}, tmp_path / "a.json")
    assert read_json(tmp_path / "a.json") == {"ü": 0.30000000000000004}
    with pytest.raises(ValueError, match="Out of range float"):
        write_json({"a": float("nan")}, tmp_path / "a.json")
    assert read_json(tmp_path / "a.json") == {"ü": 0.30000000000000004}
    assert os.listdir(tmp_path) == ["a.json"]
    write_json({"ü": 1}, Path("-"))
    assert json.loads(capsys.readouterr().out) == {"ü": 1}


SAMPLES: dict[type | None, list[Any]] = {
    str: ["", "ä"], int: [0, -7, 1 << 53], float: [0.5, math.inf], bool: [True, False], list: [[], [1]],
    dict: [{}, {"a": 1}], None: [None],
}  # fmt: skip


@pytest.mark.parametrize("wanted", SAMPLES)
@pytest.mark.parametrize("given_type", SAMPLES)
def test_a_type_and_no_other(wanted: Any, given_type: Any) -> None:
    for value in SAMPLES[given_type]:
        if wanted is given_type or (wanted is float and given_type is int):  # JSON does not tell 1 from 1.0
            assert expect_type("it", value, wanted) is value
            assert expect_type("it", value, *SAMPLES) is value
        else:
            with pytest.raises(RegardError, match="^it is .*, needs "):
                expect_type("it", value, wanted)


@given(st.text())
def test_values_in_messages_are_short(text: str) -> None:
    assert len(short(text)) <= 40
    assert short(text) == repr(text) or repr(text).startswith(short(text)[:-1])


def test_a_byte_order_mark_is_no_part_of_it() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
