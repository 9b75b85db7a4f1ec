"""Calls are opened as they were saved; files written without regard have the expected weights; bad ones are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import regard
from regard.attention import masks
from regard.attention.attention_map import AttentionMap
from regard.attention.recording import Calls, scope
from regard.errors import RegardError
from tests.support.pages import code_blocks

Q, K = torch.randn(1, 4, 3, 8), torch.randn(1, 2, 5, 8)
ABOUT = {"format": "regard attention", "version": "2"}
ROWS = torch.tensor([[True, True, False, True, False]] * 3)


def test_files_written_as_documented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    for block in code_blocks("docs/attention_file.md", "python")[:2]:
        assert "regard" not in block.replace("regard attention", "")
        exec(block, names)
    served, given = regard.open("served.safetensors"), regard.open("given.safetensors")
    assert isinstance(served, Calls)
    assert isinstance(given, Calls)
    scores = names["query"].double() @ names["key"].double().repeat_interleave(4, 0).mT / 8
    expected = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf).softmax(-1)
    call = served["layers.3.attn"]
    torch.testing.assert_close(call.weights[:].double(), expected, atol=1e-6, rtol=0)
    assert (call.how, call.layer, call.weights.shape) == ("read from a file", 3, (8, 6, 6))
    np.testing.assert_array_equal(given["decoder.0.cross"].weights[:], names["weights"])
    for each, labels in (("layers.3.attn", ["river", "."]), ("decoder.0.cross", ["river", "bank"])):
        html = {**served, **given}[each, 0]._repr_html_()
        assert html is not None
        assert [label for label in [each, *labels] if label not in html] == []


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"causal": True},
        {"causal": True, "offset": 1},
        {"window": (2, 1), "offset": 2},
        {"scale": 0.3, "softcap": 5.0, "sinks": torch.arange(4.0)},
        {"mask": ROWS, "causal": True},
        {"bias": torch.randn(4, 1, 5), "mask": masks.padding(ROWS[:1]) & masks.Mask(functions=(lambda i, j: i != j,))},
    ],
)
def test_calls_are_opened_as_they_were_saved(how: dict[str, Any], tmp_path: Path) -> None:
    with regard.record() as calls, scope("blocks.3.attn"):
        regard.attend(Q, K, K, **how)
        regard.attend(Q.double(), K.double(), K.double(), **how | {"sinks": None, "bias": None})
        regard.attend(Q[0], Q[0], Q[0], scale=how.get("scale"))
        calls.add("given", "softmax", AttentionMap.of_weights(torch.rand(2, 2)[:, :1]))
    calls.save(tmp_path / "a")
    opened = regard.open(tmp_path / "a")
    assert isinstance(opened, Calls)
    assert list(opened) == list(calls)
    for key, call in calls.items():
        assert (opened[key].how, opened[key].where) == (call.how, call.where)
        assert (opened[key].weights.shape, opened[key].weights.offset) == (call.weights.shape, call.weights.offset)
        assert torch.equal(opened[key].weights[:], call.weights[:])
    (tmp_path / "a").write_bytes((tmp_path / "a").read_bytes()[:-1] + b"\x7f")
    with pytest.raises(RegardError, match="it is damaged: its checksum differs from the saved one"):
        regard.open(tmp_path / "a")


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_labels_are_saved(tmp_path: Path) -> None:
    calls = Calls(None, ())
    for n in range(2):
        calls.add(f"layers.{n}", "softmax", AttentionMap.of_weights(torch.rand(2, 2)))
    calls.save(tmp_path / "a", tokens=np.array(["x", "y"]))
    opened = regard.open(tmp_path / "a")
    assert isinstance(opened, Calls)
    opened.save(tmp_path / "b")
    for file in (opened, regard.open(tmp_path / "b")):
        assert [[each.text for each in call.labels] for call in file.values()] == [["x y", "x y"]] * 2  # type: ignore
    with pytest.raises(RegardError, match=r"tokens: 1 labels for 2 queries of layers.0, weights \(2, 2\)"):
        calls.save(tmp_path / "c", tokens=["x"])
    with pytest.raises(RegardError, match=r"got Calls, expected traces: use calls.save"):
        regard.save(calls, tmp_path / "c")  # type: ignore[arg-type]
    assert not (tmp_path / "c").exists()


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("rows", "tensors", "says"),
    [
        ([{"tokens": {"a": 1}}], "qk", "call 0: tokens: got dict, expected one label per position"),
        ([{"casual": True}], "qk", "call 0: 'casual' is unknown, it may have path, causal, band"),
        ([{"band": [1]}], "qk", r"call 0: band, offset: need \[low, high\] and a number, all of them whole or null"),
        ([{"causal": 1}], "qk", "call 0: causal: got int, expected True or False"),
        ([{"band": ["a", 0]}], "qk", "call 0: band, offset: need"),
        ([{"tokens": "abc"}], "qk", "call 0: tokens: got str, expected one label per position"),
        ([{"path": "a.1", "tokens": ["x"]}], "qk", r"call 0: tokens: 1 labels for 3 queries of a.1, weights \(1, 4, 3"),
        ([{}], "q", "call 0: it needs query and key, or weights"),
        ([{}], "qkw", "call 0: it needs query and key, or weights"),
        ([{}], "", "call 0: it needs query and key, or weights"),
        ([{}], "qkm", r"call 0: mask: got shape \(1, 1, 2, 2\), expected a shape that broadcasts to \(1, 4, 3, 5\)"),
        ([], "qk", "tensor '0.key' belongs to none of the 0 calls"),
        ([3], "qk", "its description needs calls, a list of an object for each call"),
        (None, "qk", "its description needs calls, a list of an object for each call"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(rows: Any, tensors: str, says: str, tmp_path: Path) -> None:
    every = {"q": Q, "k": K, "w": torch.rand(2, 2), "m": torch.ones(2, 2, dtype=torch.bool)}
    names = {"q": "0.query", "k": "0.key", "w": "0.weights", "m": "0.mask"}
    file = tmp_path / "a.safetensors"
    about = ABOUT if rows is None else ABOUT | {"description": json.dumps({"calls": rows})}
    save_file({names[each]: every[each] for each in tensors}, file, about)
    with pytest.raises(RegardError, match=says) as error:
        regard.open(file)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_floating_mask_is_added_to_the_scores(tmp_path: Path) -> None:
    bias = torch.randn(3, 5)
    save_file({"0.query": Q, "0.key": K, "0.mask": bias}, tmp_path / "a", ABOUT | {"description": '{"calls": [{}]}'})
    opened = regard.open(tmp_path / "a")
    assert isinstance(opened, Calls)
    scores = Q.double() @ K.double().repeat_interleave(2, 1).mT / 8**0.5 + bias
    torch.testing.assert_close(opened["call 0"].weights[:].double(), scores.softmax(-1), atol=1e-6, rtol=0)
    opened.save(tmp_path / "b")
    assert set(load_file(tmp_path / "b")) == {"0.query", "0.key", "0.bias"}
