"""Thrift's compact protocol, against bytes spelled by hand, and bytes that are nothing of the kind."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.thrift import DEEPEST, read_thrift_struct


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


def zigzag(number: int) -> bytes:
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def test_fields_of_every_kind() -> None:
    strings = b"\x28" + varint(2) + b"ab" + varint(0)  # two: "ab" and ""
    data = b"".join([
        b"\x11", b"\x12",  # 1: true, 2: false
        b"\x13\xff", b"\x17" + bytes(8),  # 3: a byte, 4: a float
        b"\x26" + zigzag(-1_000_000_007),  # 6: a whole number
        b"\x08" + zigzag(300) + varint(3) + b"xyz",  # 300: bytes
        b"\x19" + strings,  # 301
        b"\x1c" + b"\x15" + zigzag(5) + b"\0",  # 302: a struct of one number
        b"\x19\xf2" + varint(17) + b"\x01" * 17,  # 303: 17 truth values
        b"\0", b"what follows",
    ])  # fmt: skip
    fields, end = read_thrift_struct(data)
    assert data[end:] == b"what follows"
    assert fields == {
        1: True, 2: False, 3: None, 4: None, 6: -1_000_000_007, 300: b"xyz", 301: [b"ab", b""], 302: {1: 5},
        303: [None] * 17,
    }  # fmt: skip
    for cut in range(end):
        with pytest.raises(ValueError, match="cut short"):
            read_thrift_struct(data[:cut])


@given(st.integers(-(2**63), 2**63 - 1))
def test_whole_numbers(number: int) -> None:
    assert read_thrift_struct(b"\x16" + zigzag(number) + b"\0")[0] == {1: number}


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"\x1b\0", "a field of kind 11"),
        (b"\x16" + b"\xff" * 30, "a number without an end"),
        (b"\x1c" * (DEEPEST + 2), "deeper than any of Parquet"),
        (b"\x19\x19" * 40, "deeper than any of Parquet|cut short"),
        (b"\x18" + varint(10**12), "cut short"),
        (b"\x19\xf5" + varint(10**12), "cut short"),
        (b"\x19\xfc" + varint(1 << 21) + bytes(1 << 21), "larger or deeper"),
    ],
)
def test_what_is_no_struct(data: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_thrift_struct(data)


@given(st.binary())
def test_whatever_the_bytes_are_it_ends(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert read_thrift_struct(data)[1] <= len(data)
