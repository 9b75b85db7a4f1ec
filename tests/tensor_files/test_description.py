"""Descriptions with their digests: what is read is what was written, or it is refused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import RegardError
from regard.tensor_files.description import DESCRIPTION, DESCRIPTION_DIGEST, PENDING, metadata_of, read_description

DIGESTS = {"a": "1" * 64, "b": "2" * 64}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3),
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")).map("x".__add__), VALUES, max_size=4))
def test_what_was_written_is_read(description: dict[str, Any]) -> None:
    metadata = metadata_of("a form", description, DIGESTS)
    assert read_description(metadata, "a form", DIGESTS) == (description, DIGESTS)


def test_any_other_character_is_damage() -> None:
    metadata = metadata_of("a form", {"texts": ["ä bank", 1.5]}, DIGESTS)
    text = metadata[DESCRIPTION]
    for place in range(len(text)):
        changed = text[:place] + ("x" if text[place] != "x" else "y") + text[place + 1 :]
        with pytest.raises(RegardError, match="it is damaged: its description is not what was saved"):
            read_description(metadata | {DESCRIPTION: changed}, "a form", DIGESTS)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"version": 3}, "it has format version 3, this regard reads version 1: update it"),
        ({"version": 0}, "it has format version 0, this regard reads version 1$"),
        ({"version": "1"}, "version is '1', needs a whole number"),
        ({"format": "cake"}, "it holds a 'cake', needs a 'a form'"),
        ({"digests": {"a": "1" * 64}}, "its digests: 'b' is missing"),
        ({"digests": {**DIGESTS, "c": "3" * 64}}, "its digests: 'c' is unknown"),
        ({"digests": {**DIGESTS, "b": "2" * 63}}, "the digest of 'b' has 63 digits, needs 64"),
        ({"digests": None}, "its digests is None, needs names"),
    ],
)
def test_what_is_of_another_kind(changed: dict[str, Any], says: str) -> None:
    import hashlib

    fields = json.loads(metadata_of("a form", {}, DIGESTS)[DESCRIPTION]) | changed
    text = json.dumps(fields)
    metadata = {DESCRIPTION: text, DESCRIPTION_DIGEST: hashlib.sha256(text.encode()).hexdigest()}
    with pytest.raises(RegardError, match=says):
        read_description(metadata, "a form", DIGESTS)


def test_metadata_of_others() -> None:
    right = metadata_of("a form", {}, {})
    for metadata in ({}, {"format": "pt"}, {DESCRIPTION: right[DESCRIPTION]}):
        with pytest.raises(RegardError, match="a safetensors file, but none that regard saved"):
            read_description(metadata, "a form", [])
    with pytest.raises(RegardError, match="its metadata: 'format' is unknown"):
        read_description(right | {"format": "pt"}, "a form", [])


def test_metadata_whose_digests_are_pending_are_as_long() -> None:
    pending, right = metadata_of("a form", {}, dict.fromkeys(DIGESTS, PENDING)), metadata_of("a form", {}, DIGESTS)
    assert {name: len(text) for name, text in pending.items()} == {name: len(text) for name, text in right.items()}
    assert pending[DESCRIPTION_DIGEST] == PENDING
