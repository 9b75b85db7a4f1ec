"""Maps as files: what is loaded gives the same weights, and what is no map is refused."""

import json
import os
import time
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import torch
from hypothesis import given, settings
from safetensors.torch import save_file

import regard
from regard.attention import map_file
from regard.attention.edges import Edges
from regard.tensor_files.description import metadata_of
from regard.tensor_files.digests import digest_of
from tests.attention.cases import Case, cases, random, worst


@settings(max_examples=60)
@given(cases())
def test_what_was_packed_is_the_same_map(case: Case) -> None:
    seen = regard.attend(case.query, case.key, case.value, **case.options).weights
    tensors, description = map_file.pack(seen)
    again = regard.AttentionMap.of(map_file.unpack_attention_map(tensors, json.loads(json.dumps(description))))
    assert (again.shape, again.dtype, again.offset) == (seen.shape, seen.dtype, seen.offset)
    rounding = 1e-6 + 8 * torch.finfo(seen.dtype).eps * case.largest  # another layout may be summed in another order
    assert worst(again.scores[...], seen.scores[...]) <= rounding
    assert worst(again.dense(), seen.dense()) <= rounding
    assert all(tensor.is_contiguous() for tensor in tensors.values())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_a_file_holds_a_map(tmp_path: Path, dtype: torch.dtype) -> None:
    query = random(0, 2, 5, 3, dtype=dtype)
    mask = regard.masks.padding(torch.tensor([[True, True, False, True, True]])) & regard.masks.function(
        lambda i, j: (i + j) % 3 != 0
    )
    seen = regard.attend(query, query, query, mask=mask, causal=True, softcap=3.0, sinks=torch.zeros(2)).weights
    file = tmp_path / "map.safetensors"
    seen.save(file)
    again = regard.AttentionMap.load(file)
    assert torch.equal(again.dense(), seen.dense())
    assert torch.equal(again.distance(), seen.distance())
    assert again.query.dtype == dtype
    assert again.shape == seen.shape == (2, 5, 5)
    assert list(tmp_path.iterdir()) == [file]


def test_nothing_of_size_n_by_n_is_written(tmp_path: Path) -> None:
    query = random(0, 1, 1, 4096, 2, dtype=torch.float32)
    bias = torch.zeros(1).expand(1, 1, 4096, 4096)
    regard.attend(query, query, query, causal=True, bias=bias[:, :, :1]).weights.save(tmp_path / "map")
    assert (tmp_path / "map").stat().st_size < 200_000


def test_a_function_over_too_much_is_refused_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(map_file, "FUNCTION_LIMIT", 24)
    query = random(0, 5, 2)
    mask = regard.masks.function(lambda i, j: (i + j) % 2 == 0)
    seen = regard.attend(query, query, query, mask=mask).weights
    with pytest.raises(ValueError, match=r"mask: given a function of positions over 5 × 5 scores"):
        seen.save(tmp_path / "map")
    assert not list(tmp_path.iterdir())


def test_a_file_that_was_there_stays_after_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = random(0, 5, 2)
    seen = regard.attend(query, query, query).weights
    seen.save(tmp_path / "map")
    before = (tmp_path / "map").read_bytes()

    def full_disk(tensors: object, part: Path, metadata: object) -> None:
        part.write_bytes(b"half of it")
        raise MemoryError

    monkeypatch.setattr(map_file, "save_file", full_disk)
    with pytest.raises(MemoryError):
        seen.to(torch.float32).save(tmp_path / "map")
    assert (tmp_path / "map").read_bytes() == before
    assert list(tmp_path.iterdir()) == [tmp_path / "map"]


def test_what_is_no_map(tmp_path: Path) -> None:
    file = tmp_path / "map"

    def refused(says: str) -> None:
        with pytest.raises(regard.RegardError, match=says) as caught:
            regard.AttentionMap.load(file)
        assert "\n" not in str(caught.value)

    refused("there is no such file")
    file.write_bytes(b"nothing of the kind")
    refused("no whole attention map: it is no safetensors file")
    save_file({"query": torch.zeros(2)}, file)
    refused("a safetensors file, but none that regard saved")
    query = random(0, 5, 2)
    tensors, description = map_file.pack(regard.attend(query, query, query).weights)
    save_file(tensors, file, {"regard": json.dumps({"map": description, "version": 1})})
    refused("a safetensors file, but none that regard saved")  # it holds no digests
    sealed(file, tensors, description, version=3)
    refused("it has format version 3, this regard reads version 1: update it")
    os.mkfifo(tmp_path / "pipe")
    file = tmp_path / "pipe"
    refused("it is no regular file")


def sealed(file: Path, tensors: dict[str, torch.Tensor], description: object, **changed: object) -> None:
    """A file whose digests are right, whatever it describes."""
    digests = {name: digest_of(tensor) for name, tensor in tensors.items()}
    save_file(tensors, file, metadata_of(map_file.FORMAT, {"map": description, **changed}, digests))


def test_values_that_attend_would_not_take(tmp_path: Path) -> None:
    file = tmp_path / "map"
    query = random(0, 1, 2, 5, 3, dtype=torch.float32)
    mask = regard.masks.dense(torch.rand(5, 5) > 0.2) & regard.masks.padding(torch.ones(1, 5, dtype=torch.bool))
    mask = replace(mask, removed=(Edges((1, 2, 5, 5), heads=(1,), queries=(0, 3), keys=None),))
    bias = torch.full((1, 1, 5, 5), -torch.inf).triu(1)
    seen = regard.attend(query, query, query, mask=mask, bias=bias, causal=True, sinks=torch.zeros(2)).weights
    tensors, right = map_file.pack(seen)
    sealed(file, tensors, right)
    assert torch.equal(regard.AttentionMap.load(file).dense(), seen.dense())

    def refused(says: str, told: object = right, **changed: torch.Tensor) -> None:
        sealed(file, tensors | changed, told)
        began = time.monotonic()
        with pytest.raises(regard.RegardError, match=says) as caught:
            regard.AttentionMap.load(file, verify=True)
        assert "\n" not in str(caught.value)
        assert time.monotonic() - began < 2

    for name, value, says in (
        ("scale", 1e300, "scale is 1e.300, which is more than float32 holds"),
        ("scale", "a", "scale is 'a', needs a number"),
        ("softcap", 0, "softcap is 0.0, needs a number above 0"),
        ("softcap", 1e-60, "needs a number above 0"),
        ("offset", 1e15, "offset is 1000000000000000.0, needs a whole number or null"),
        ("offset", 10**15, "offset is 1000000000000000, needs a whole number from"),
        ("ndim", 5, "ndim is 5, needs a whole number from 2 to 4"),
        ("ndim", 2, "ndim is 2, needs more"),
        ("colour", 1, "'colour' is unknown"),
        ("mask", [], "mask is .., needs names"),
    ):
        refused(says, right | {name: value})
    for name, value, says in (
        ("low", "a", "mask: low is 'a', needs a whole number or null"),
        ("low", 1.5, "mask: low is 1.5"),
        ("high", 10**15, "mask: high is 1000000000000000, needs a whole number from"),
        ("dense", 10**12, "the number of its dense parts is 1000000000000, needs a whole number from 1 to 1"),
        ("dense", 0, "the number of its dense parts is 0"),
        ("removed", 3, "mask: removed is 3, needs a list"),
        ("other", 3, "mask: 'other' is unknown"),
    ):
        refused(says, right | {"mask": right["mask"] | {name: value}})
    (edges,) = right["mask"]["removed"]
    for name, numbers, says in (
        ("keys", [5], "edges: one of keys is 5, needs a whole number from 0 to 4"),
        ("queries", [3, 0], "edges: one of queries is 0, needs a whole number from 4 to 4"),
        ("heads", [-1], "edges: one of heads is -1"),
        ("shape", [1, 2, 5, 6], "edges are described of a map of shape .1, 2, 5, 6., it has .1, 2, 5, 5."),
        ("texts", [0], "edges: 'texts' is unknown"),
    ):
        refused(says, right | {"mask": right["mask"] | {"removed": [edges | {name: numbers}]}})
    refused("its tensor 'extra' is unknown|extra has shape", extra=torch.zeros(2))
    refused("do not fit", key=tensors["key"][..., :2].contiguous())
    refused("do not fit", key=tensors["key"].double())
    refused("bias has shape", bias=torch.zeros(1, 3, 5, 5))
    refused("mask.keys is torch.float32, needs boolean values", **{"mask.keys": torch.zeros(1, 5)})
    refused("tensor 'query' holds numbers that are not finite", query=tensors["query"] * torch.nan)
    refused("tensor 'bias' holds numbers that are not finite", bias=-tensors["bias"])


def test_what_is_no_number_is_not_saved(tmp_path: Path) -> None:
    query = random(0, 5, 2, dtype=torch.float32)
    seen = regard.attend(query, query, query).weights
    seen.query[0, 0, 3, 1] = torch.nan
    with pytest.raises(regard.RegardError, match="its tensor 'query' holds numbers that are not finite"):
        seen.save(tmp_path / "map")
    assert not list(tmp_path.iterdir())


def test_a_flipped_bit_of_a_map_is_found(tmp_path: Path) -> None:
    file = tmp_path / "map"
    query = random(0, 2, 5, 3, dtype=torch.float32)
    seen = regard.attend(query, query, query, causal=True, sinks=torch.zeros(2)).weights
    seen.save(file)
    right, refusals = file.read_bytes(), 0
    places = Random(3).sample(range(8 * len(right)), 200)
    for place in places:
        changed = bytearray(right)
        changed[place // 8] ^= 1 << place % 8
        file.write_bytes(changed)
        try:
            dense = regard.AttentionMap.load(file).dense()
        except regard.RegardError:
            refusals += 1
        else:
            assert torch.equal(dense, seen.dense())
    assert refusals > 190, "only what is never read may be another"
