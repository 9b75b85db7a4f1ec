import json
from pathlib import Path

import pytest
import safetensors
import safetensors.torch
import torch

import regard
from regard.trace import gets, gives, special_share, vector
from tests.support import RIVER


def same(a, b) -> None:
    assert (a.text, a.tokens, a.status) == (b.text, b.tokens, b.status)
    for name in ("learned", "positional", "segment", "input", "contextual"):
        assert torch.equal(getattr(a, name), getattr(b, name))
    assert a.logits is None
    assert b.logits is None
    for x, y in zip(a.states, b.states, strict=True):
        assert torch.equal(x, y)
    for x, y in zip(a.attention, b.attention, strict=True):
        assert torch.equal(x.dense(), y.dense())
    for x, y in zip(a.values, b.values, strict=True):
        assert torch.equal(x, y)


def test_a_saved_trace_is_the_same_without_the_model(bank, tmp_path: Path) -> None:
    bank[0].save(tmp_path / "one.safetensors")
    same(bank[0], regard.open(tmp_path / "one.safetensors"))
    regard.save(bank, tmp_path / "two.safetensors")
    for a, b in zip(bank, regard.open(str(tmp_path / "two.safetensors")), strict=True):
        same(a, b)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.safetensors", "two.safetensors"]


def test_files_that_are_no_traces(bank, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"

    def refused(says: str) -> None:
        with pytest.raises(regard.RegardError, match=says) as caught:
            regard.open(file)
        assert "\n" not in str(caught.value)

    refused("no trace file")
    file.write_bytes(b"something else")
    refused("is no whole trace file")
    safetensors.torch.save_file({"a": torch.zeros(2)}, file)
    refused("no trace that regard saved")
    bank[0].save(file)
    content = file.read_bytes()
    file.write_bytes(content[:-100])
    refused("is no whole trace file")
    file.write_bytes(content)
    with safetensors.safe_open(file, framework="pt") as opened:
        header = json.loads(opened.metadata()["regard"])
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118

    def rewrite(changed_header, changed_tensors) -> None:
        safetensors.torch.save_file(changed_tensors, file, {"regard": json.dumps(changed_header)})

    rewrite(header | {"version": 99}, tensors)
    refused("format version 99, this regard reads 1")
    rewrite(header | {"format": "cake"}, tensors)
    refused("holds a 'cake'")
    rewrite(header, {name: t for name, t in tensors.items() if name != "0.states.3"})
    refused("is no whole trace file")
    rewrite(header, tensors | {"0.learned": torch.zeros(3, 4)})
    refused("tensor 'learned' has shape")
    rewrite(header, tensors | {"0.attention.2.query": torch.zeros(1, 12, 3, 32)})
    refused("attention map of layer 2")


def test_a_word_of_several_tokens(minilm) -> None:
    trace = minilm.trace("two withdrawals there")
    (word,) = trace.word("withdrawals")
    assert word.tokens == (2, 3)
    dense = trace.attention[1].dense()
    torch.testing.assert_close(vector(trace.contextual, word), trace.contextual[2:4].mean(0))
    torch.testing.assert_close(gives(trace.attention[1], word), dense[:, 2:4].mean(1))
    torch.testing.assert_close(gets(trace.attention[1], word), dense[:, :, 2] + dense[:, :, 3])


def test_the_share_of_special_tokens(bank) -> None:
    trace = bank[0]
    row = trace.attention[0][:, 11]
    torch.testing.assert_close(special_share(row, trace.tokens), row[:, 0] + row[:, 13])


def test_a_trace_says_what_it_is(bank) -> None:
    assert repr(bank[0]) == f"Trace({RIVER!r}, 14 tokens, 6 layers, all-MiniLM-L6-v2)"
    assert not any(t.requires_grad for t in bank[0].states)
