"""What cannot be described is refused in one line that names it, before a tensor is read."""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import regard
from regard.explain.causes.contributions import contributions
from regard.tensor_files.description import metadata_of
from tests.support.trace_files import parts, refused, sealed

IDS = torch.tensor([[7, 11, 13, 17, 19]])


def test_descriptions_that_cannot_be(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    trace.save(file, attention_outputs=True)
    told, tensors = parts(file)

    def rewrite(says: str, **changed: Any) -> None:
        sealed(file, tensors, told | changed)
        refused(says, regard.open, file)

    rewrite("format version 99, this regard reads version 1: update it", version=99)
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
    rewrite("the id of one of names is -1, needs a whole number from 0", traces=[one | {"names": [[-1, "a"]]}])
    assert "pooling" not in one  # it comes from no folder that says it
    pooling = {"modes": ["mean"], "normalise": True, "lower_case": False, "prompt": ""}
    sealed(file, tensors, told | {"traces": [one | {"pooling": pooling}]})
    assert regard.open(file).pooling.modes == ("mean",)
    for wrong, says in (
        ({"modes": ["sum"]}, "pooling: modes are .'sum'., known are cls, max"),
        ({"modes": [["mean"]]}, "pooling: modes are"),
        ({"modes": []}, "pooling: modes are .., known are"),
        ({"modes": "mean"}, "pooling: modes is 'mean', needs a list"),
        ({"normalise": 1}, "pooling: normalise is 1, needs true or false"),
        ({"prompt": None}, "pooling: prompt is None, needs a text"),
        ({"colour": 1}, "pooling: 'colour' is unknown"),
        ({"left_out": "3"}, "pooling: left_out is '3', needs a whole number"),
        ({"left_out": -1}, "pooling: left_out is -1, needs a whole number"),
    ):
        rewrite(says, traces=[one | {"pooling": pooling | wrong}])
    turn = {"role": "user", "start": 0, "end": 1, "tokens": [0]}
    sealed(file, tensors, told | {"traces": [one | {"turns": [turn]}]})
    assert [each.role for each in regard.open(file).turns] == ["user"]
    for other, says in (
        ({"role": 1}, "turn: role is 1, needs a text"),
        ({"end": 10**6}, "turn: end is 1000000, needs a whole number from 0"),
        ({"start": 1, "end": 0}, "turn: start is 1, needs a whole number from 0 to 0"),
        ({"tokens": [99]}, "turn: token is 99, needs a whole number from 0"),
        ({"tokens": ["a"]}, "turn: token is 'a'"),
        ({"colour": 1}, "a turn: 'colour' is unknown"),
    ):
        rewrite(says, traces=[one | {"turns": [turn | other]}])
    rewrite("turns is 7, needs a list", traces=[one | {"turns": 7}])
    held = one["attention"]["saved"]

    def layer(says: str, **changed: Any) -> None:
        changed_stack = one["attention"] | {"saved": [held[0], held[1] | changed]}
        rewrite(says, traces=[one | {"attention": changed_stack}])

    layer("layer 7 is described, of 2", layer=7)
    layer("needs .1, H, L, D. with H = 5, L = 5", heads=5)
    layer("heads of layer 1 is 0, needs", heads=0)
    layer("needs .1, G, S, D. with S = 4", keys=4)
    layer("tensor 'gone' is missing", value="gone")
    layer("an attention output of the kind 'cake'", attention_output=held[1]["attention_output"] | {"kind": "cake"})
    layer("attention map: 'version' is unknown", map=held[1]["map"] | {"version": 99})
    layer("layer 1: mask is 'a', needs names", map=held[1]["map"] | {"mask": "a"})
    layer("layer 0 is described twice", layer=0)
    layer("call 1 of layer 1 is described, which the layer did not make", nth=1)
    for made, says in (
        ([[0, 0]], "call 0 of layer 1 is described, which the layer did not make"),
        ([[0, 1]], "the number of layer 0's next call is 1, needs a whole number from 0 to 0"),
        ([[2, 0]], "a call's layer is 2, needs a whole number from 0 to 1"),
        ([[0]], "a call has 1 numbers"),
        ([7], "a call is 7"),
        ({}, "the calls that were made"),
    ):
        rewrite(says, traces=[one | {"attention": one["attention"] | {"made": made}}])
    layer("a layer: 'colour' is unknown", colour=1)
    layer("an attention output: 'colour' is unknown", attention_output=held[1]["attention_output"] | {"colour": 1})
    for name, value, says in (
        ("layers", 10**12, "the number of layers is 1000000000000, needs"),
        ("saved", [], "tensor '.*' is unknown"),
    ):
        rewrite(says, traces=[one | {"attention": one["attention"] | {name: value}}])
    rewrite(
        "the number of hidden states is 1000000000000",
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
                metadata = metadata_of("regard trace", told, dict.fromkeys(changed, "0" * 64))
                safetensors.torch.save_file(changed, file, metadata)
            else:
                sealed(file, changed, told)
            free = name.endswith((".contextual", ".logits")) and changed.get(name, tensor[None]).ndim == 2
            if free and changed[name].is_floating_point():
                continue  # a width that no other tensor shares
            refused("is no whole trace file: ", regard.open, file)


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
        ({**told, "version": 0}, "has format version 0, this regard reads version 1"),
        ({**told, "version": "2"}, "version is '2', needs a whole number"),
    ):
        sealed(changed, tensors, header)
        refused(says, regard.open, changed)


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


@pytest.mark.long  # 9 s: an interpreter a file
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in the way of Linux")
def test_a_refusal_takes_neither_time_nor_memory(trace: Any, tmp_path: Path) -> None:
    file = tmp_path / "a"
    trace.save(file)
    told, tensors = parts(file)
    one = told["traces"][0]
    mask = {"low": None, "high": None, "dense": 10**12, "removed": []}
    layers = [dict(each, map=each["map"] | {"mask": mask}) for each in one["attention"]["saved"]]

    def header(told: bytes, data: bytes = b"") -> bytes:
        told += b" " * (-len(told) % 8)
        return len(told).to_bytes(8, "little") + told + data

    def entries(count: int) -> dict[str, Any]:
        return {f"t{n}": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]} for n in range(count)}

    def many(count: int) -> bytes:
        metadata = metadata_of("regard trace", told, dict.fromkeys(entries(count), "1" * 64))
        return header(json.dumps({"__metadata__": metadata, **entries(count)}).encode())

    junk = b'{"a":' + b"[]," * (5 << 20)
    metadata = {"__metadata__": {"regard": "[" * 100_000, "regard.digest": hashlib.sha256(b"[" * 100_000).hexdigest()}}
    cases: tuple[tuple[bytes | dict[str, Any], str], ...] = (
        (told | {"traces": [one | {"attention": one["attention"] | {"saved": layers}}]}, "dense parts is 10000000000"),
        (header(json.dumps(entries(500_000)).encode()), "its header has .* bytes, at most"),
        (header(json.dumps({"__metadata__": {}, **entries(250_000)}).encode()), "names 250,000 tensors, no model"),
        (many(1000), "tensor '.*' is missing"),
        (header(junk + b'[]]}'), "its header is damaged"),
        (header(b"{" + b'"a":[' * 200_000), "its header is damaged: Expecting"),
        (header(b'{"a":' * 200_000), "its header is damaged: it is nested too deep"),
        (header(json.dumps(metadata).encode()), "its description is damaged: it is nested too deep"),
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
