"""A damaged file is refused when it is opened, a damaged tensor when it is first read."""

import copy
import pickle
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from tests.support.attention_outputs import make_model, traced
from tests.support.trace_files import parts, refused, same, sealed

IDS = torch.tensor([[7, 11, 13, 17, 19]])


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


def test_a_status_of_many_rows_comes_back(tmp_path: Path) -> None:
    trace = traced(make_model("bert"), torch.tensor([[7, 11, 13]]))
    trace.status.rows_compared = 1_000_003
    trace.save(tmp_path / "a")
    assert regard.open(tmp_path / "a").status == trace.status
