"""What is opened is what was saved, to the last bit, or says how it differs; what is no trace file is refused."""

import json
import os
import re
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.explain.causes.contributions import contributions
from regard.models.model import Model
from regard.trace.layer_subset import call_numbers, calls_made
from regard.trace.trace import PairTrace
from tests.support.attention_outputs import make_model
from tests.support.trace_files import Maker, refused, same

IDS = torch.tensor([[7, 11, 13, 17, 19]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_what_was_saved_is_opened(folder: Path, data: Any) -> None:
    many, attention_outputs = data.draw(st.booleans()), data.draw(st.booleans())
    made: list[Any] = [Maker(data.draw).any() for _ in range(data.draw(st.integers(1, 3)) if many else 1)]
    file = folder / "a.safetensors"
    regard.save(made if many else made[0], file, attention_outputs=attention_outputs)
    opened = regard.open(file)
    for a, b in zip(made, opened if many else [opened], strict=True):
        same(a, b, attention_outputs=attention_outputs)
    assert isinstance(opened, list) == many
    tensors = safetensors.torch.load_file(file)  # the library finds in it what is found in it here
    name = "0.encoder.contextual" if isinstance(made[0], PairTrace) else "0.contextual"
    assert torch.equal(tensors[name], (made[0].encoder if isinstance(made[0], PairTrace) else made[0]).contextual)


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_chosen_layers_and_heads(folder: Path, data: Any) -> None:
    trace = Maker(data.draw, one_call_each=True).any()
    whole = trace.decoder if isinstance(trace, PairTrace) else trace
    layers = data.draw(st.lists(st.integers(0, len(whole.attention) - 1), min_size=1))
    stacks = [whole.attention, whole.cross]
    if isinstance(trace, PairTrace):
        stacks.append(trace.encoder.attention)
    count = min(maps[0].shape[0] for maps in stacks if maps)
    heads = sorted(data.draw(st.sets(st.integers(0, count - 1), min_size=1)))
    file = folder / "b.safetensors"
    regard.save(trace, file, layers=layers, heads=heads)
    opened = regard.open(file)
    pairs = [(trace, opened)]
    if isinstance(trace, PairTrace):
        pairs = [(trace.encoder, opened.encoder), (trace.decoder, opened.decoder)]
    for a, b in pairs:
        for maps, values in (("attention", "values"), ("cross", "cross_values")):
            here, there = getattr(a, maps), getattr(b, maps)
            assert len(here) == len(there)
            for n in range(len(here)):
                if n not in layers:
                    with pytest.raises(regard.RegardError, match=rf"\[{n}\] was not saved: of \d+ the file holds"):
                        there[n]
                    continue
                torch.testing.assert_close(there[n].dense(), here[n].dense()[heads], atol=1e-6, rtol=0)
                torch.testing.assert_close(there[n].sink_share, here[n].sink_share[heads], atol=1e-6, rtol=0)
                v, w = getattr(a, values)[n], getattr(b, values)[n]
                assert (v is None) == (w is None)
                if v is not None:  # each head's own values, however few of them are stored
                    mine = v.repeat_interleave(here[n].shape[0] // len(v), 0)[heads]
                    assert torch.equal(w.repeat_interleave(len(heads) // len(w), 0), mine)
        assert all(torch.equal(x, y) for x, y in zip(a.hidden_states, b.hidden_states, strict=True))
        numbers = ", ".join(map(str, heads))
        assert any(re.match(f"saved were heads? {numbers} of each layer: head", note) for note in b.status.notes)


def test_chosen_layers_of_a_hybrid_and_of_several_calls(tmp_path: Path) -> None:
    types = ["conv", "full_attention", "conv", "full_attention"]
    hybrid = make_model("lfm2", num_hidden_layers=4, layer_types=types, num_key_value_heads=2)
    for model, layers, calls in ((hybrid, [2, 3], ((3, 0),)), (make_model("diffllama"), [1], ((1, 0), (1, 1)))):
        trace = Model(model, None, name="made").trace(ids=IDS[0])
        regard.save(trace, tmp_path / "a", layers=layers)
        opened = regard.open(tmp_path / "a")
        assert call_numbers(opened.attention) == calls
        assert all(torch.equal(opened.attention[call].dense(), trace.attention[call].dense()) for call in calls)
        assert calls_made(opened.attention) == calls_made(trace.attention)
        with pytest.raises(
            regard.RegardError, match=r"attention\[0\] (was not saved: of 2|is not there: layer 0 has no)"
        ):
            opened.attention[0]


def test_a_real_trace_is_the_same_without_the_model(bank: Any, tmp_path: Path) -> None:
    bank[0].save(tmp_path / "one.safetensors")
    same(bank[0], regard.open(tmp_path / "one.safetensors"))
    regard.save(bank, str(tmp_path / "two.safetensors"))
    for a, b in zip(bank, regard.open(str(tmp_path / "two.safetensors")), strict=True):
        same(a, b)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.safetensors", "two.safetensors"]


def test_an_opened_trace_is_saved_anew_over_its_own_file(bank: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    bank[0].save(file, layers=[1, 4])
    opened = regard.open(file)
    assert repr(opened).endswith("14 tokens, 2 of 6 layers, all-MiniLM-L6-v2)")
    opened.save(file)
    again = regard.open(file)
    assert again.status.notes == opened.status.notes == ("attention and values were saved of layers 1, 4 of 6",)
    assert torch.equal(again.attention[-2].dense(), bank[0].attention[4].dense())
    with pytest.raises(regard.RegardError, match=r"attention\[3\] was not saved: of 6 the file holds 1, 4"):
        opened.save(file, layers=[3])
    with pytest.raises(regard.RegardError, match=r"attention cannot be walked along, for of 6 it holds 1, 4"):
        list(again.attention)
    with pytest.raises(IndexError):
        again.attention[6]


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "gemma2", "t5", "bart"])
def test_contributions_of_an_opened_trace(kind: str, tmp_path: Path) -> None:
    model = make_model(kind, **({"num_key_value_heads": 2} if kind in ("llama", "gemma2") else {}))
    given = {"target_ids": [23, 29, 31]} if model.config.is_encoder_decoder else {}
    trace = Model(model, None, name=kind).trace(ids=IDS[0].tolist(), **given)
    trace.save(tmp_path / "a", attention_outputs=True)
    opened = regard.open(tmp_path / "a")
    same(trace, opened, attention_outputs=True)
    seen = 0
    pairs = [(trace.encoder, opened.encoder, None)] if given else [(trace, opened, None)]
    pairs += [(trace.decoder, opened.decoder, part) for part in (None, "cross")] if given else []
    for a, b, part in pairs:
        for layer in range(2):
            for row in range(len(a.tokens)):
                x, y = (contributions(each, row, layer, part=part) for each in (a, b))
                assert x.error == y.error
                for name in ("norms", "shares", "residual", "bias", "vector"):
                    assert torch.equal(getattr(x, name), getattr(y, name))
                seen += 1
    assert seen == (2 * 5 + 4 * 3 if given else 10)


def test_files_that_are_no_traces(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    refused("no trace file '.*a.safetensors'", regard.open, file)
    refused("is a folder, needs a file", regard.open, tmp_path)
    for content in (b"", b"short", b"something else entirely"):
        file.write_bytes(content)
        refused("it is no safetensors file", regard.open, file)
    safetensors.torch.save_file({"a": torch.zeros(2)}, file)
    refused("a safetensors file, but none that regard saved", regard.open, file)
    trace.attention[0].save(file)
    refused("it holds a 'regard attention map', needs a 'regard trace'", regard.open, file)
    safetensors.torch.save_file({"a": torch.zeros(2)}, file, {"regard": json.dumps({"version": 1})})
    refused("a safetensors file, but none that regard saved", regard.open, file)  # it holds no digests


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_what_would_be_waited_for_for_ever(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(tmp_path / "socket"))
        for file in (tmp_path / "pipe", tmp_path / "socket", Path("/dev/zero")):
            refused("it is no regular file", regard.open, file)


def test_files_cut_anywhere(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    trace.save(file)
    content = file.read_bytes()
    header = 8 + int.from_bytes(content[:8], "little")
    assert header % 64 == 0
    for size in (header - 1, header, header + 7, len(content) - 1):
        file.write_bytes(content[:size])
        refused(f"it is cut short, it has {size} bytes", regard.open, file)
    file.write_bytes(content + b"x")
    refused("it is too long", regard.open, file)
    file.write_bytes(content[:9] + b"!" * (header - 9) + content[header:])
    refused("its header is damaged", regard.open, file)


def test_a_file_that_cannot_be_written(trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("cannot write '.*a': No such file", trace.save, tmp_path / "gone" / "a")
    trace.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("regard.tensor_files.pieces.Piece.chunks", full)
    refused("cannot write '.*a': No space left", trace.save, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_disk_that_is_full(trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard.trace import file as trace_file

    real = trace_file.write
    monkeypatch.setattr(trace_file, "write", lambda file, *what: real(Path("/dev/full"), *what))
    refused("cannot write '.*a': No space left", trace.save, tmp_path / "a")
    assert not list(tmp_path.iterdir())
