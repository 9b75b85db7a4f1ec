"""What cannot be saved or opened is refused in one line that names what was given, and nothing is left behind."""

import copy
import hashlib
import json
import os
import pickle
import random
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import regard
from regard.explain.contributions import contributions
from regard.models.model import Model
from regard.tensor_files import digest_of, fill_in
from tests.support.attention_outputs import make_model, traced
from tests.support.trace_files import same

IDS = torch.tensor([[7, 11, 13, 17, 19]])


@pytest.fixture(scope="module")
def trace() -> Any:
    return traced(make_model("bert"), IDS)


@pytest.fixture(scope="module")
def pair() -> Any:
    return Model(make_model("bart"), None, name="bart").trace(ids=[7, 11, 13], target_ids=[5, 3])


def refused(says: str, call: Any, *given: Any, **more: Any) -> None:
    with pytest.raises(regard.RegardError, match=says) as caught:
        call(*given, **more)
    assert "\n" not in str(caught.value)


def sealed(file: Path, tensors: dict[str, torch.Tensor], told: dict[str, Any]) -> None:
    """A file whose digests are right, whatever it describes."""
    digests = {name: digest_of(tensor) for name, tensor in tensors.items()}
    safetensors.torch.save_file(tensors, file, fill_in("regard trace", told, digests))


def parts(file: Path) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    with safetensors.safe_open(file, framework="pt") as opened:
        told = json.loads(opened.metadata()["regard"])
        told = {name: told[name] for name in ("many", "traces")}
        return told, {name: opened.get_tensor(name).clone() for name in opened.keys()}  # noqa: SIM118


def test_files_that_are_no_traces(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    refused("no trace file '.*a.safetensors'", regard.open, file)
    refused("is a folder, needed is a file", regard.open, tmp_path)
    for content in (b"", b"short", b"something else entirely"):
        file.write_bytes(content)
        refused("it is no safetensors file", regard.open, file)
    safetensors.torch.save_file({"a": torch.zeros(2)}, file)
    refused("a safetensors file, but none that regard saved", regard.open, file)
    trace.attention[0].save(file)
    refused("it holds a 'regard attention map', needed is a 'regard trace'", regard.open, file)
    safetensors.torch.save_file({"a": torch.zeros(2)}, file, {"regard": json.dumps({"version": 2})})
    refused("format version 2, whose files hold no digests: this regard reads version 3", regard.open, file)


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


def test_descriptions_that_cannot_be(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    trace.save(file, attention_outputs=True)
    told, tensors = parts(file)

    def rewrite(says: str, **changed: Any) -> None:
        sealed(file, tensors, told | changed)
        refused(says, regard.open, file)

    rewrite("format version 99, this regard reads version 3: update it", version=99)
    rewrite("holds a 'cake'", format="cake")
    rewrite("'colour' is unknown", colour=1)
    one = told["traces"][0]
    rewrite(
        "is no whole trace file: a trace: 'text' is missing", traces=[{k: v for k, v in one.items() if k != "text"}]
    )
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
    layer("an attention output of the kind 'cake'", block=held[1]["block"] | {"kind": "cake"})
    layer("attention map: 'version' is unknown", map=held[1]["map"] | {"version": 99})
    layer("layer 1: mask is 'a', needs names", map=held[1]["map"] | {"mask": "a"})
    layer("layer 0 is described twice", layer=0)
    layer("a layer: 'colour' is unknown", colour=1)
    layer("an attention output: 'colour' is unknown", block=held[1]["block"] | {"colour": 1})
    for name, value, says in (
        ("layers", 10**12, "the number of layers is 1000000000000, needs"),
        ("held", [], "tensor '.*' is unknown"),
    ):
        rewrite(says, traces=[one | {"attention": one["attention"] | {name: value}}])
    rewrite(
        "the number of states is 1000000000000",
        traces=[one | {"hidden_states": one["hidden_states"] | {"count": 10**12}}],
    )
    rewrite("vectors: 'colour' is unknown", traces=[one | {"vectors": one["vectors"] | {"colour": "0.contextual"}}])
    rewrite("status: 'kernels' is missing", traces=[one | {"status": {"model": "bert"}}])
    rewrite("a trace: 'colour' is unknown", traces=[one | {"colour": 1}])
    first = one["tokens"][0]
    for place, value, says in ((2, 99, "the start of token 0 is 99"), (3, 10**6, "the end of token 0 is 1000000"),
                               (0, -2, "the id of token 0 is -2")):  # fmt: skip
        changed = [*first[:place], value, *first[place + 1 :]]
        rewrite(says, traces=[one | {"tokens": [changed, *one["tokens"][1:]]}])


def test_tensors_that_do_not_fit(pair: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    pair.save(file, attention_outputs=True)
    told, tensors = parts(file)
    assert len(tensors) > 60
    for name, tensor in tensors.items():
        for changed in (
            {k: t for k, t in tensors.items() if k != name},
            tensors | {name: tensor[..., :-1].contiguous()},
            tensors | {name: tensor[None]},
            tensors | {name: tensor.long()},
        ):
            if any(tensor.dtype == torch.int64 for tensor in changed.values()):
                metadata = fill_in("regard trace", told, dict.fromkeys(changed, "0" * 64))
                safetensors.torch.save_file(changed, file, metadata)
            else:
                sealed(file, changed, told)
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
    no("attention outputs with chosen heads", attention_outputs=True, heads=[1])
    no("attention outputs with dtype bfloat16", attention_outputs=True, dtype="bfloat16")
    no("given no trace, needs at least one", [])
    trace.save(file)
    opened = regard.open(file)
    file.unlink()
    no("does not hold them; it may have been opened from a file without", opened, attention_outputs=True)
    large = traced(make_model("bert"), IDS)
    large.hidden_states = (large.hidden_states[0] * 1e6, *large.hidden_states[1:])
    no(r"dtype float16 cannot hold \d.*e\+0.: choose another", large, dtype="float16")


def test_a_file_that_cannot_be_written(trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused("cannot write '.*a': No such file", trace.save, tmp_path / "gone" / "a")
    trace.save(tmp_path / "a")
    before = (tmp_path / "a").read_bytes()

    def full(*_: Any) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("regard.trace.file_tensors.Piece.bites", full)
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


def test_values_of_the_wrong_kind(trace: Any, tmp_path: Path) -> None:
    """Any value of a description replaced by what JSON can hold else: it opens and can be used, or is refused."""
    file, changed = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    trace.save(file, attention_outputs=True)
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
            sealed(changed, tensors, again)
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
        ({**told, "version": 0}, "has format version 0, this regard reads version 3"),
        ({**told, "version": "2"}, "version is '2', needs a whole number"),
    ):
        sealed(changed, tensors, header)
        refused(says, regard.open, changed)


def test_every_flipped_bit_is_found_or_changes_nothing(tmp_path: Path) -> None:
    trace = traced(make_model("gpt2"), IDS)
    file = tmp_path / "a"
    trace.save(file, attention_outputs=True)
    right = file.read_bytes()
    header = 8 + int.from_bytes(right[:8], "little")
    drawn = random.Random(5)
    places = [64 * n // 40 for n in range(40)] + [drawn.randrange(64, 8 * header) for _ in range(160)]
    places += [drawn.randrange(8 * header, 8 * len(right)) for _ in range(150)]
    found = dict.fromkeys(("opening", "reading", "verifying"), 0)
    for place in places:
        changed = bytearray(right)
        changed[place // 8] ^= 1 << place % 8
        file.write_bytes(changed)
        try:
            opened = regard.open(file)
        except regard.RegardError:
            found["opening"] += 1
            continue
        assert place >= 8 * header, "the header is checked whole when the file is opened"
        try:
            same(trace, opened, attention_outputs=True)
        except regard.RegardError:
            found["reading"] += 1
        with pytest.raises(regard.RegardError, match="is damaged: tensor '.*' is not what was saved"):
            regard.open(file, verify=True)
        found["verifying"] += 1
    assert found == {"opening": 200, "reading": 150, "verifying": 150}


def test_a_damaged_tensor_is_refused_when_it_is_first_read_and_the_others_are_not(tmp_path: Path) -> None:
    trace = traced(make_model("bert"), IDS)
    file = tmp_path / "a"
    trace.save(file)
    _, tensors = parts(file)
    right = file.read_bytes()
    first, second = (tensors[name].numpy().tobytes() for name in ("0.hidden_states.0", "0.hidden_states.1"))
    swapped = bytearray(right)
    for old, new in ((first, second), (second, first)):
        swapped[right.index(old) : right.index(old) + len(old)] = new
    assert swapped != right
    file.write_bytes(swapped)
    opened = regard.open(file)
    assert opened.hidden_states[1].shape == trace.hidden_states[1].shape
    assert torch.equal(opened.hidden_states[2], trace.hidden_states[2])
    ways: tuple[Callable[[torch.Tensor], Any], ...] = (
        lambda t: t + 1, lambda t: t.numpy(), lambda t: t.tolist(), lambda t: float(t[0, 0]), repr, torch.clone,
        lambda t: torch.stack([t, t]), lambda t: t.data_ptr(), lambda t: list(t), lambda t: t.detach().sum(),
        lambda t: t.to(torch.float64), lambda t: torch.empty_like(t).copy_(t), lambda t: pickle.dumps(t),
        lambda t: copy.deepcopy(t), lambda t: bool((t == t).all()), lambda t: torch.nn.functional.relu(t),
    )  # fmt: skip
    for way in ways:
        refused("is damaged: tensor '0.hidden_states.1' is not what was saved", way, opened.hidden_states[1])
        way(opened.hidden_states[2])
    refused("is damaged: tensor '0.hidden_states.0' is not what was saved", torch.stack, opened.hidden_states)
    refused("is damaged: tensor '0.hidden_states", opened.save, tmp_path / "b")
    assert not (tmp_path / "b").exists()
    for changed in (right + b"\0", right[:-1], right + right[-4:]):
        file.write_bytes(changed)
        refused("it is (too long|cut short)", regard.open, file)


def test_numbers_that_are_none(tmp_path: Path) -> None:
    file = tmp_path / "a"
    trace = traced(make_model("bert"), IDS)
    trace.save(file)
    told, tensors = parts(file)
    for name in ("0.attention.0.query", "0.hidden_states.1"):
        for value in (torch.nan, torch.inf, -torch.inf):
            broken = tensors[name].clone()
            broken.view(-1)[7] = value
            sealed(file, tensors | {name: broken}, told)  # by whoever made the file, digests and all
            opened = regard.open(file)
            refused(f"tensor '{name}' holds numbers that are not finite", regard.open, file, verify=True)
            reads = opened.attention[0].dense if "query" in name else opened.hidden_states[1].sum
            refused(f"tensor '{name}' holds numbers that are not finite", reads)
    trace.hidden_states[1][0, 0] = torch.nan
    refused(
        "tensor '0.hidden_states.1' holds numbers that are not finite: it cannot be saved", trace.save, tmp_path / "b"
    )
    assert not (tmp_path / "b").exists()


HOSTILE = """
import resource, sys, time
import regard.trace.file
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for file in sys.argv[1:]:
    began = time.process_time()
    try:
        regard.open(file, verify=True)
    except regard.RegardError as error:
        took = time.process_time() - began
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10
        print(int(1000 * took), more, error)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in the way of Linux")
def test_a_refusal_takes_neither_time_nor_memory(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    trace.save(file)
    told, tensors = parts(file)
    one = told["traces"][0]
    mask = {"low": None, "high": None, "dense": 10**12, "removed": []}
    layers = [dict(each, map=each["map"] | {"mask": mask}) for each in one["attention"]["held"]]

    def header(told: bytes, data: bytes = b"") -> bytes:
        told += b" " * (-len(told) % 8)
        return len(told).to_bytes(8, "little") + told + data

    def entries(count: int) -> dict[str, Any]:
        return {f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(count)}

    def many(count: int) -> bytes:
        metadata = fill_in("regard trace", told, dict.fromkeys(entries(count), "1" * 64))
        return header(json.dumps({"__metadata__": metadata, **entries(count)}).encode())

    junk = b'{"a":' + b"[]," * (5 << 20)
    metadata = {"__metadata__": {"regard": "[" * 100_000, "regard.digest": hashlib.sha256(b"[" * 100_000).hexdigest()}}
    cases: tuple[tuple[bytes | dict[str, Any], str], ...] = (
        (told | {"traces": [one | {"attention": one["attention"] | {"held": layers}}]}, "dense parts is 1000000000000"),
        (header(json.dumps(entries(500_000)).encode()), "its header has .* bytes, at most"),
        (header(json.dumps({"__metadata__": {}, **entries(250_000)}).encode()), "names 250000 tensors, the file"),
        (many(1000), "tensor '.*' is missing"),
        (header(junk + b'[]]}'), "its header is damaged"),
        (header(b"{" + b'"a":[' * 200_000), "its header is (nested too deeply|damaged)"),
        (header(json.dumps(metadata).encode()), "its description is nested too deeply"),
        (header(b'{"a":1,"a":2}'), "'a' stands in it twice"),
        (header(b'{"a":{"dtype":"F32","shape":[90071992547],"data_offsets":[0,4]}}', b"1234"), "bytes of its shape"),
        (header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}', b"12345678"), "begins at byte"),
        (header(b'{"a":{"dtype":"F32","shape":[1],"data_offsets":[-4,0]}}', b"1234"), "whole numbers"),
        ((1 << 62).to_bytes(8, "little") + b"{}", "it is cut short"),
    )  # fmt: skip
    files = [tmp_path / str(n) for n in range(len(cases))]
    for file, (content, _) in zip(files, cases, strict=True):
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            sealed(file, tensors, content)
    command = [sys.executable, "-W", "ignore", "-c", HOSTILE, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for line, (_, says) in zip(done.stdout.splitlines(), cases, strict=True):
        milliseconds, megabytes, message = line.split(" ", 2)
        assert re.search(says, message), message
        assert int(megabytes) < 450, line
        assert int(milliseconds) < 6000, line  # 1,100 at most on a machine that does nothing else
