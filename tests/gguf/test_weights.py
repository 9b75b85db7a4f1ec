"""Weights of GGUF files that stay quantised give what they give when the whole file is raised to float32."""

import os
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.explain.causes.outcomes import Outcome
from regard.gguf import file as gguf_weights
from regard.gguf.file import Header, read_gguf_header
from regard.model_files.stored_weight import StoredWeight
from regard.models.model import Model
from tests.gguf.gguf_files import LAYERS, gguf, write_gguf

pytest.importorskip("accelerate", reason="the package accelerate is not installed (extra gguf)")

IDS = [1, 12, 9, 36, 4, 12, 7]
MATRICES = {"llama": 7 * LAYERS, "gemma3": 7 * LAYERS, "gpt2": 4 * LAYERS, "qwen3moe": 6 * LAYERS}
OTHERS = {"llama": 1, "gemma3": 1, "gpt2": 2, "qwen3moe": 2 + LAYERS}  # tables, a head, routers
CASES = [
    *(("llama", kind) for kind in ("Q4_0", "Q4_1", "Q8_0", "Q3_K", "Q4_K", "Q6_K", "F16", "BF16")),
    ("gemma3", "Q4_1"), ("gpt2", "Q5_0"), ("qwen3moe", "Q8_0"),
]  # fmt: skip
SIZES = {0: (1, 4), 8: (32, 34)}  # F32 and Q8_0
U32, I32, F32, STRING, ARRAY, U64 = 4, 5, 6, 8, 9, 10


@pytest.fixture(autouse=True)
def every_matrix_is_kept(monkeypatch) -> None:
    monkeypatch.setattr(gguf_weights, "MIN_QUANTISED", 1)
    monkeypatch.setattr(gguf_weights, "LONG", 10)  # so that a vocabulary is passed over


def kept(model: Model) -> int:
    return sum(isinstance(each, StoredWeight) for each in model.model.parameters())


def both(file: Path) -> tuple[Model, Model]:
    stored, whole = (regard.load(file, device="cpu", dtype=dtype) for dtype in ("auto", "float32"))
    assert kept(whole) == 0
    return stored, whole


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_weights_are_the_same_and_so_is_what_comes_of_them(family: str, kind: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", family, kind)
    stored, whole = both(tmp_path / "tiny.gguf")
    assert kept(stored) == MATRICES[family] + OTHERS[family]
    theirs = dict(whole.model.named_parameters())
    for name, weight in stored.model.named_parameters():
        assert torch.equal(weight + 0, theirs[name]), name
    ours, theirs = stored.trace(ids=IDS), whole.trace(ids=IDS)
    assert "for each product" in ours.status.notes[0]
    assert ours.status.notes[0].split(")")[0] == theirs.status.notes[0].split(")")[0]
    assert ours.status.difference < 5e-6
    for one, two in zip(ours.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5 * max(1.0, float(two.abs().max())), rtol=0)
    for one, two in zip(ours.attention, theirs.attention, strict=True):
        torch.testing.assert_close(one.dense(), two.dense(), atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-5, rtol=0)


def test_explanations_and_what_is_saved_are_those_of_the_whole(tmp_path: Path) -> None:
    """Contributions, gradients, interventions, generation, hashes and files read the weights too."""
    write_gguf(tmp_path / "tiny.gguf", "llama", "Q4_1")
    found, saved = [], []
    for model in both(tmp_path / "tiny.gguf"):
        trace = model.trace(ids=IDS)
        changed = model.trace(ids=IDS, interventions=[regard.ablate(regard.head(1, 2))])
        written = model.generate(ids=IDS, max_new_tokens=3)
        scores = regard.attribute_to_tokens(
            model, trace, Outcome("a logit", lambda run: run.sides[-1].logits[-1, 7]), steps=3
        )
        direct = torch.tensor([each["adds"] for each in regard.attribution(model, trace, len(IDS) - 1, 7).rows()])
        parts = trace.attention_outputs[0].weight.double()
        found.append((changed.last_hidden_state, written.trace.last_hidden_state, parts, scores.scores, direct))
        torch.save(model.model.state_dict(), tmp_path / "saved.pt")
        saved.append(torch.load(tmp_path / "saved.pt", weights_only=True))
    for ours, theirs in zip(*found, strict=True):
        assert ours.numel() > 0
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert saved[0].keys() == saved[1].keys()
    assert all(torch.equal(saved[0][name], each) for name, each in saved[1].items())


def test_experts_whose_matrices_are_of_two_kinds_are_raised(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", "qwen3moe", "Q8_0", "Q4_1")
    stored, whole = both(tmp_path / "tiny.gguf")
    assert kept(stored) == MATRICES["qwen3moe"] + OTHERS["qwen3moe"] - LAYERS
    torch.testing.assert_close(stored.trace(ids=IDS).logits, whole.trace(ids=IDS).logits, atol=1e-5, rtol=0)


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    write_gguf(file, "llama", "Q4_1")
    reader = gguf.GGUFReader(file, "r+")
    found = next(each for each in reader.tensors if each.name == "blk.1.ffn_up.weight")
    found.data[3, 40:42] = 0xFF  # a scale
    reader.data.flush()
    with pytest.raises(
        regard.RegardError, match=r"its weights hold NaN, in tensor 'model.layers.1.mlp.up_proj.weight'"
    ):
        regard.load(file, device="cpu")


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
        (b"GGUF", "at byte 4 it needs 4 more, but has 0"),
        (b"GGML" + bytes(40), "it does not begin with GGUF"),
        (header([], [], version=1), "its version is 1"),
        (header([], [], version=3 << 24), "its version is 50331648"),
        (header([], [], tensors_told=HUGE), "it names 1,152,921,504,606,846,976 tensors"),
        (header([], [], entries_told=HUGE), "1,152,921,504,606,846,976 entries, no model has so many"),
        (header([], [tensor("t", [])] * 10**5), "it names 100,000 tensors"),
        (header([], [], tensors_told=10), "it needs 8 more, but has 0"),
        (header([array(U64, HUGE)], []), "more, but has 0"),
        (header([array(STRING, HUGE)], []), "more, but has 0"),
        (header([array(STRING, 1, struct.pack("<Q", HUGE))], []), "needs 1,152,921,504,606,846,976 more"),
        (header([entry("x", STRING, struct.pack("<Q", HUGE))], []), "needs 1,152,921,504,606,846,976 more"),
        (header([NESTED], []), "it has a list of lists"),
        (header([array(77, 1)], []), "a value of the unknown kind 77"),
        (header([entry("x", 77, b"")], []), "a value of the unknown kind 77"),
        (header([MANY], []), "its lists have 1,048,576 items, no vocabulary of its size"),
        (header([BLOCKS], [tensor("t", [1])], bytes(4)), "block_count is 1,000,000, but the file has 1 tensors"),
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
    with pytest.raises(regard.RegardError, match="is truncated or not a GGUF file") as caught:
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
        with pytest.raises(regard.RegardError, match="is truncated or not a GGUF file"):
            regard.load(file, device="cpu")


def test_sizes_below_zero(tmp_path: Path) -> None:
    pytest.importorskip("gguf", reason="the package gguf is not installed (extra gguf)")
    pytest.importorskip("accelerate", reason="the package accelerate is not installed (extra gguf)")
    file = tmp_path / "a.gguf"
    for name in ("head_count", "embedding_length", "block_count"):
        numbers = {"block_count": 1, "embedding_length": 8, "head_count": 2, "feed_forward_length": 8} | {name: -3}
        entries = [entry(f"llama.{key}", I32, struct.pack("<i", value)) for key, value in numbers.items()]
        file.write_bytes(header([LLAMA, *entries], [tensor("token_embd.weight", [8, 4])], bytes(4096)))
        with pytest.raises(regard.RegardError, match=f"llama.{name} is -3, expected a whole number of 1 or"):
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
