"""GloVe's file: each word with its own numbers, and no other file in its place."""

import hashlib
import struct
from pathlib import Path

import pytest
import torch

from drawings import glove


def test_words_and_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"the": (10.0, 2.5), "naïve": (32.0, -4.0)}
    content = b"2 2\n" + b"".join(word.encode() + b" " + struct.pack("<2f", *row) + b"\n" for word, row in rows.items())
    (tmp_path / "glove.bin").write_bytes(content)
    with pytest.raises(ValueError, match="is not the file"):
        glove.glove(tmp_path / "glove.bin")
    monkeypatch.setattr(glove, "SHA256", hashlib.sha256(content).hexdigest())
    words, vectors = glove.glove(tmp_path / "glove.bin")
    assert words == {"the": 0, "naïve": 1}
    assert torch.equal(vectors, torch.tensor([*rows.values()]))
