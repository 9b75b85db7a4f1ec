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
    expect_fields,
    expect_finite,
    expect_integer,
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
    assert read_json(file, infinite=True) == {"limits": [0.0, float("inf")]}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"{ broken", "cannot be read: Expecting property name"),
        (b"", "cannot be read: Expecting value"),
        (b"[1]", "needs a JSON object, given list"),
        (b"null", "needs a JSON object, given NoneType"),
        (b'{"a": "\xff"}', "cannot be read: it is not in UTF-8 .byte 0xff at place 7"),
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


@pytest.mark.parametrize(
    ("value", "wanted"), [((1 << 53) + 1, int), (-(1 << 53) - 1, float), ("\ud800", str), (object(), dict)]
)
def test_what_json_could_not_carry(value: Any, wanted: type) -> None:
    with pytest.raises(RegardError, match="it is"):
        expect_type("it", value, wanted)


@given(st.integers(-50, 50), st.integers(-20, 20), st.integers(-20, 20))
def test_whole_numbers_within_bounds(value: int, least: int, most: int) -> None:
    if least <= value <= most:
        assert expect_integer("it", value, least, most) == value
    else:
        with pytest.raises(RegardError, match=f"it is {value}, needs a whole number from {least} to {most}"):
            expect_integer("it", value, least, most)


def test_null_only_where_it_may_be() -> None:
    assert expect_integer("it", None, 0, 1, None) is None
    assert expect_finite("it", None, None) is None
    for check in (lambda: expect_integer("it", None, 0, 1), lambda: expect_finite("it", None)):
        with pytest.raises(RegardError, match="it is None, needs"):
            check()


def test_finite_numbers() -> None:
    assert expect_finite("it", 3) == 3.0
    assert isinstance(expect_finite("it", 3), float)
    for value in (math.inf, -math.inf, math.nan):
        with pytest.raises(RegardError, match="needs a finite number"):
            expect_finite("it", value)


@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_all_needed_fields_and_no_unknown_ones(there: set[str], needed: set[str], maybe: set[str]) -> None:
    value = dict.fromkeys(sorted(there), 1)
    if needed <= there <= needed | maybe:
        assert expect_fields("it", value, sorted(needed), maybe=sorted(maybe)) is value
        return
    wrong = needed - there or there - needed - maybe
    says = "is missing" if needed - there else "is unknown"
    with pytest.raises(RegardError, match=f"it: '[{''.join(sorted(wrong))}]' {says}"):
        expect_fields("it", value, sorted(needed), maybe=sorted(maybe))


@given(st.text())
def test_values_in_messages_are_short(text: str) -> None:
    assert len(short(text)) <= 40
    assert short(text) == repr(text) or repr(text).startswith(short(text)[:-1])


def test_a_byte_order_mark_is_no_part_of_it() -> None:
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
