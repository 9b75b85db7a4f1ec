"""JSON within limits: what is no JSON, or too much of it, is refused in one line."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.json_files import parse_json, read_json, write_json


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
    assert read_json(file, infinite=True) == {"limits": [0.0, float("inf")]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{ broken", "cannot be read: Expecting property name"),
        (b"", "cannot be read: Expecting value"),
        (b"[1]", "needs a JSON object, given list"),
        (b"null", "needs a JSON object, given NoneType"),
        (b'{"a": "\xff"}', "cannot be read: 'utf-8' codec"),
        (b'{"a": 1, "b": 2, "a": 3}', "the entry 'a' is there twice"),
        (b'{"a": NaN}', "it holds the number nan"),
        (b'{"a": [-Infinity]}', "it holds the number -inf"),
        (b'{"a": 1e999}', "it holds the number inf"),
        (b'{"a": ' + b"9" * 5000 + b"}", "cannot be read: Exceeds the limit"),
        (b'{"a": ' + b"[" * 65 + b"]" * 65 + b"}", "nested deeper than 64 levels"),
        (b'{"a": ' + b'{"a":' * 10**6 + b"1" + b"}" * 10**6 + b"}", "nested deeper than 64 levels"),
        (b"[" * 10**7, "nested deeper than 64 levels"),
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


@pytest.mark.parametrize("deepest", [1, 2, 64])
def test_as_deep_as_is_allowed_and_no_deeper(deepest: int) -> None:
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        inner = "1" if opening == '{"a":' else ""
        parse_json(opening * deepest + inner + closing * deepest, deepest=deepest)
        with pytest.raises(RegardError, match=f"nested deeper than {deepest} levels"):
            parse_json(opening * (deepest + 1) + "1" + closing * (deepest + 1), deepest=deepest)


def test_json_is_written_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_json({"ü": 0.1 + 0.2}, tmp_path / "a.json")
    assert read_json(tmp_path / "a.json") == {"ü": 0.30000000000000004}
    with pytest.raises(ValueError, match="Out of range float"):
        write_json({"a": float("nan")}, tmp_path / "a.json")
    assert read_json(tmp_path / "a.json") == {"ü": 0.30000000000000004}
    assert os.listdir(tmp_path) == ["a.json"]
    write_json({"ü": 1}, Path("-"))
    assert json.loads(capsys.readouterr().out) == {"ü": 1}
