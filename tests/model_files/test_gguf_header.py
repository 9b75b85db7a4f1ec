"""GGUF headers: every count is held against the file before a library walks it."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.model_files.gguf_header import Header, read_gguf_header

SIZES = {0: (1, 4), 8: (32, 34)}  # F32 and Q8_0
U32, I32, F32, STRING, ARRAY, U64 = 4, 5, 6, 8, 9, 10


def text(value: str | bytes) -> bytes:
    content = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(content)) + content


def entry(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(name: str, shape: list[int], kind: int = 0, offset: int = 0, axes: int | None = None) -> bytes:
    told = len(shape) if axes is None else axes
    return text(name) + struct.pack(f"<I{len(shape)}Q", told, *shape) + struct.pack("<IQ", kind, offset)


def header(entries: list[bytes], tensors: list[bytes], data: bytes = b"", **told_of: int) -> bytes:
    counts = {"version": 3, "tensors_told": len(tensors), "entries_told": len(entries)} | told_of
    told = counts["version"], counts["tensors_told"], counts["entries_told"]
    return b"GGUF" + struct.pack("<IQQ", *told) + b"".join(entries) + b"".join(tensors) + data


LLAMA = entry("general.architecture", STRING, text("llama"))


def test_what_a_header_says(tmp_path: Path) -> None:
    file = tmp_path / "a.gguf"
    tokens = entry("tokenizer.ggml.tokens", ARRAY, struct.pack("<IQ", STRING, 2) + text("a") + text("bc"))
    scores = entry("scores", ARRAY, struct.pack("<IQ2f", F32, 2, 0.5, 1.5))
    count = entry("llama.block_count", U32, struct.pack("<I", 1))
    tensors = [tensor("a", [4, 3]), tensor("b", [64, 2], 8)]
    file.write_bytes(header([LLAMA, tokens, scores, count], tensors, bytes(48 + 4 * 34)))
    found = read_gguf_header(file, SIZES)
    assert (found.held.tensors, found.held.numbers) == (2, 12 + 128)
    assert found.values == {
        "general.architecture": "llama", "tokenizer.ggml.tokens": 2, "scores": 2, "llama.block_count": 1
    }  # fmt: skip
    assert dict(found.kinds) == {0: 1, 8: 1}


def array(kind: int, count: int, content: bytes = b"") -> bytes:
    return entry("x", ARRAY, struct.pack("<IQ", kind, count) + content)


HUGE = 1 << 60
NESTED = array(ARRAY, 1, struct.pack("<IQ", ARRAY, 1) * 1000)
MANY = array(0, 1 << 20, bytes(1 << 20))
BLOCKS = entry("llama.block_count", U32, struct.pack("<I", 10**6))


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "cannot mmap an empty file"),
        (b"GGUF", "at byte 4 it needs 4 more, it has 0"),
        (b"GGML" + bytes(40), "it does not begin with GGUF"),
        (header([], [], version=1), "its version is 1"),
        (header([], [], version=3 << 24), "its version is 50331648"),
        (header([], [], tensors_told=HUGE), "it names 1,152,921,504,606,846,976 tensors"),
        (header([], [], entries_told=HUGE), "1,152,921,504,606,846,976 entries, no model has so many"),
        (header([], [tensor("t", [])] * 10**5), "it names 100,000 tensors"),
        (header([], [], tensors_told=10), "it needs 8 more, it has 0"),
        (header([array(U64, HUGE)], []), "more, it has 0"),
        (header([array(STRING, HUGE)], []), "more, it has 0"),
        (header([array(STRING, 1, struct.pack("<Q", HUGE))], []), "needs 1,152,921,504,606,846,976 more"),
        (header([entry("x", STRING, struct.pack("<Q", HUGE))], []), "needs 1,152,921,504,606,846,976 more"),
        (header([NESTED], []), "it has a list of lists"),
        (header([array(77, 1)], []), "a value of the unknown kind 77"),
        (header([entry("x", 77, b"")], []), "a value of the unknown kind 77"),
        (header([MANY], []), "its lists have 1,048,576 items, no vocabulary of its size"),
        (header([BLOCKS], [tensor("t", [1])], bytes(4)), "block_count is 1,000,000, it holds 1 tensors"),
        (header([], [tensor("t", [1] * 5)], bytes(4)), "tensor 't' has 5 axes"),
        (header([], [tensor("t", [], axes=2**31)], bytes(4)), "tensor 't' has 2147483648 axes"),
        (header([], [tensor("t", [2], 99)], bytes(8)), "of the unknown kind 99"),
        (header([], [tensor("t", [1 << 40, 1 << 40])], bytes(64)), "its tensors have 4,835,703,278,458,516,698,824"),
        (header([], [tensor(str(n), [4]) for n in range(5)], bytes(64)), "its tensors have 80 bytes, it has 64"),
    ],
    ids=range(23),
)
def test_headers_that_lie(tmp_path: Path, content: bytes, says: str) -> None:
    file = tmp_path / "a.gguf"
    file.write_bytes(content)
    with pytest.raises(regard.RegardError, match="is truncated or no GGUF file") as caught:
        read_gguf_header(file, SIZES)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_they_are_refused_before_the_library_reads_them(tmp_path: Path, monkeypatch) -> None:
    package: Any = pytest.importorskip("gguf", reason="the package gguf is not installed (extra gguf)")
    pytest.importorskip("accelerate", reason="the package accelerate is not installed (extra gguf)")
    monkeypatch.setattr(package, "GGUFReader", lambda *_: pytest.fail("the library read it"))
    file = tmp_path / "a.gguf"
    for content in (header([LLAMA, array(U64, HUGE)], []), header([LLAMA, BLOCKS], [tensor("t", [1])], bytes(4))):
        file.write_bytes(content)
        with pytest.raises(regard.RegardError, match="is truncated or no GGUF file"):
            regard.load(file, device="cpu")


def test_sizes_below_zero_and_files_beside_it(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the package gguf is not installed (extra gguf)")
    pytest.importorskip("accelerate", reason="the package accelerate is not installed (extra gguf)")
    file = tmp_path / "a.gguf"
    for name in ("head_count", "embedding_length", "block_count"):
        numbers = {"block_count": 1, "embedding_length": 8, "head_count": 2, "feed_forward_length": 8} | {name: -3}
        entries = [entry(f"llama.{key}", I32, struct.pack("<i", value)) for key, value in numbers.items()]
        file.write_bytes(header([LLAMA, *entries], [tensor("token_embd.weight", [8, 4])], bytes(4096)))
        with pytest.raises(regard.RegardError, match=f"llama.{name} is -3, needs a whole number of 1 or"):
            regard.load(file, device="cpu")
    os.mkfifo(tmp_path / "tokenizer_config.json")
    file.write_bytes(header([LLAMA], [tensor("token_embd.weight", [8, 4])], bytes(4096)))
    with pytest.raises(regard.RegardError, match="tokenizer_config.json' cannot be read: it needs"):
        regard.load(file, device="cpu")


@pytest.mark.real
def test_a_real_one() -> None:
    folder = os.environ.get("REGARD_SMOLLM2")
    if not folder:
        pytest.skip("REGARD_SMOLLM2 names no folder of SmolLM2's GGUF file")
    package: Any = pytest.importorskip("gguf", reason="the package gguf is not installed (extra gguf)")
    (file,) = Path(folder).glob("*.gguf")
    found: Header = read_gguf_header(file, {int(kind): size for kind, size in package.GGML_QUANT_SIZES.items()})
    assert found.held.tensors == 272
    assert found.held.numbers == 134_515_008
    assert (found.held.bytes, found.held.half) == (file.stat().st_size, True)
    assert [count for count, _ in found.lists.values()] == [49_152, 49_152, 48_900]
    assert found.values["llama.block_count"] == 30
