"""What cannot be saved or opened is refused in one line that names what was given, and nothing is left behind."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import regard
from regard.explain.contributions import contributions
from regard.models.pretrained import Pretrained
from tests.blocks import make_model, traced

IDS = torch.tensor([[7, 11, 13, 17, 19]])


@pytest.fixture(scope="module")
def trace() -> Any:
    return traced(make_model("bert"), IDS)


@pytest.fixture(scope="module")
def pair() -> Any:
    return Pretrained(make_model("bart"), None, name="bart").trace(ids=[7, 11, 13], target_ids=[5, 3])


def refused(says: str, call: Any, *given: Any, **more: Any) -> None:
    with pytest.raises(regard.RegardError, match=says) as caught:
        call(*given, **more)
    assert "\n" not in str(caught.value)


def parts(file: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    with safetensors.safe_open(file, framework="pt") as opened:
        told = json.loads(opened.metadata()["regard"])
        return told, {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118


def test_files_that_are_no_traces(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    refused("no trace file '.*a.safetensors'", regard.open, file)
    refused("is a folder, needed is a file", regard.open, tmp_path)
    for content in (b"", b"short", b"something else entirely"):
        file.write_bytes(content)
        refused("it is no safetensors file", regard.open, file)
    safetensors.torch.save_file({"a": torch.zeros(2)}, file)
    refused("a safetensors file, but no trace", regard.open, file)
    trace.attention[0].save(file)
    refused("holds one attention map and no trace: regard.AttentionMap.load", regard.open, file)


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


def test_descriptions_that_cannot_be(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    trace.save(file, blocks=True)
    told, tensors = parts(file)

    def rewrite(says: str, **changed: Any) -> None:
        safetensors.torch.save_file(tensors, file, {"regard": json.dumps(told | changed)})
        refused(says, regard.open, file)

    rewrite("format version 99, this regard reads up to 2", version=99)
    rewrite("holds a 'cake'", format="cake")
    one = told["traces"][0]
    rewrite("is no whole trace file: 'text' is missing", traces=[{k: v for k, v in one.items() if k != "text"}])
    rewrite("it holds a 'cake'", traces=[one | {"kind": "cake"}])
    rewrite("needs .L, W. with L = 4", traces=[one | {"tokens": one["tokens"][:-1]}])
    rewrite("is no whole trace file", traces=[one | {"tokens": [[1, 2]]}])
    rewrite("is no whole trace file", traces=[7])
    held = one["attention"]["held"]

    def layer(says: str, **changed: Any) -> None:
        changed_stack = one["attention"] | {"held": [held[0], held[1] | changed]}
        rewrite(says, traces=[one | {"attention": changed_stack}])

    layer("layer 7 is described, of 2", layer=7)
    layer("needs .1, H, L, D. with H = 5, L = 5", heads=5)
    layer("needs .1, G, S, D. with S = 4", keys=4)
    layer("tensor 'gone' is missing", value="gone")
    layer("a block of the kind 'cake'", block=held[1]["block"] | {"kind": "cake"})
    layer("given version 99", map=held[1]["map"] | {"version": 99})


def test_tensors_that_do_not_fit(pair: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    pair.save(file, blocks=True)
    told, tensors = parts(file)
    assert len(tensors) > 60
    for name, tensor in tensors.items():
        for changed in (
            {k: t for k, t in tensors.items() if k != name},
            tensors | {name: tensor[..., :-1].contiguous()},
            tensors | {name: tensor[None]},
            tensors | {name: tensor.long()},
        ):
            safetensors.torch.save_file(changed, file, {"regard": json.dumps(told)})
            free = name.endswith((".contextual", ".logits")) and changed.get(name, tensor[None]).ndim == 2
            if free and changed[name].is_floating_point():
                continue  # a width that no other tensor shares
            refused("is no whole trace file: ", regard.open, file)


def test_choices_that_cannot_be(trace: Any, pair: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"

    def no(says: str, what: Any = trace, **more: Any) -> None:
        refused(says, regard.save, what, file, **more)
        assert not list(tmp_path.iterdir())

    no("layer 2 does not exist: bert has layers 0 to 1", layers=[0, 2])
    no("layer -1 does not exist: layers are counted from 0", layers=[-1])
    no("layers: given none", layers=[])
    no("heads: given .True., needs whole numbers", heads=[True])
    no("head 6 does not exist: layer 0 has heads 0 to 5", heads=[6])
    no("layer 2 does not exist: bart has layers 0 to 1", pair, layers=[2])
    no("dtype: given 'int8', needs bfloat16, float16, float32", dtype=torch.int8)
    no("dtype: given 'bf16', needs", dtype="bf16")
    no("blocks with chosen heads", blocks=True, heads=[1])
    no("blocks with dtype bfloat16", blocks=True, dtype="bfloat16")
    no("given no trace, needs at least one", [])
    trace.save(file)
    opened = regard.open(file)
    file.unlink()
    no("does not hold them; it may have been opened from a file without", opened, blocks=True)
    large = traced(make_model("bert"), IDS)
    large.states = (large.states[0] * 1e6, *large.states[1:])
    no(r"dtype float16 cannot hold \d.*e\+0.: choose another", large, dtype="float16")


def test_a_file_that_cannot_be_written(trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("cannot write '.*a': No such file", trace.save, tmp_path / "gone" / "a")
    trace.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("regard.captures.pieces.Piece.bites", full)
    refused("cannot write '.*a': No space left", trace.save, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["a"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.skipif(sys.platform != "linux", reason="needs /dev/full")
def test_a_disk_that_is_full(trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from regard import captures

    real = captures.write
    monkeypatch.setattr(captures, "write", lambda pieces, metadata, file: real(pieces, metadata, Path("/dev/full")))
    refused("cannot write '.*a': No space left", trace.save, tmp_path / "a")
    assert not list(tmp_path.iterdir())


def test_values_of_the_wrong_kind(trace: Any, tmp_path: Path) -> None:
    """Any value of a description replaced by what JSON can hold else: it opens and can be used, or is refused."""
    file, changed = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    trace.save(file, blocks=True)
    told, tensors = parts(file)

    def places(node: Any, path: tuple[Any, ...] = ()) -> Any:
        items = node.items() if isinstance(node, dict) else enumerate(node[:2]) if isinstance(node, list) else ()
        for name, child in items:
            yield (*path, name)
            yield from places(child, (*path, name))

    count = 0
    for number, (*path, last) in enumerate(places(told)):
        wrong = (None, "\ud800", -7, 10**30, [], {}, [1, 2, 3], True, 1.5)[number % 9 :][:2]
        for value in wrong:
            again = json.loads(json.dumps(told))
            spot = again
            for name in path:
                spot = spot[name]
            spot[last] = value
            safetensors.torch.save_file(tensors, changed, {"regard": json.dumps(again)})
            try:
                opened = regard.open(changed)
                opened = opened[0] if isinstance(opened, list) else opened
                opened.attention[0].dense()
                contributions(opened, 1, 0)
                opened.save(file)
            except regard.RegardError:
                count += 1
    assert count > 100
    for header, says in (
        ({**told, "traces": []}, "holds no trace"),
        ({**told, "version": 0}, "has format version 0, there are 1 to 2"),
        ({**told, "version": "2"}, "version is '2', needs a whole number"),
        ([told], "its description is .*, needs names"),
    ):
        safetensors.torch.save_file(tensors, changed, {"regard": json.dumps(header)})
        refused(says, regard.open, changed)
    safetensors.torch.save_file(tensors, changed, {"regard": "[" * 100_000})
    refused("nested too deeply", regard.open, changed)
