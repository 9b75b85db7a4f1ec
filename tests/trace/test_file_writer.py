"""What is stored of a trace: no tensor twice, no key heads that are not needed, rounded numbers with a note."""

import json
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import regard
from regard.attention.attention_map import AttentionMap
from regard.models.model import Model
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.tensor_files.pieces import Pieces
from regard.text import tokenizers
from regard.trace.file_checks import check_description
from regard.trace.file_format import Choice
from regard.trace.file_writer import describe_trace_to_save
from tests.support import ROOT
from tests.support.attention_outputs import make_model, traced
from tests.support.trace_files import Maker, refused, same

IDS = torch.tensor([[7, 11, 13, 17, 19]])


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_a_description_is_what_json_holds_of_it(data: Any) -> None:
    """So what `save` checks is what `open` will check."""
    pieces = Pieces()
    described = describe_trace_to_save(
        Maker(data.draw).any(), Choice(attention_outputs=data.draw(st.booleans())), "0.", pieces
    )
    description = {"many": False, "traces": [described]}
    assert json.loads(json.dumps(description)) == description
    check_description(description, pieces.shapes())


def test_what_could_not_be_opened_is_not_saved(tmp_path: Path) -> None:
    for changed, says in (
        ({"text": ""}, "the end of token 0 is 3, needs a whole number from 0 to 0"),
        ({"contextual": torch.zeros(4, 7)}, "'0.contextual' has shape .4, 7., needs .L, K. with L = 5"),
        ({"logits": torch.zeros(5, 3, 2)}, "'0.logits' has shape .5, 3, 2., needs .L, V."),
    ):
        trace = traced(make_model("bert"), IDS)
        for name, value in changed.items():
            setattr(trace, name, value)
        refused(says, trace.save, tmp_path / "a")
        assert not list(tmp_path.iterdir())


def test_saving_builds_no_map(trace: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = AttentionMap.__init__
    monkeypatch.setattr(AttentionMap, "__init__", lambda self, *a, **k: (made.append(1), original(self, *a, **k))[1])
    trace.save(tmp_path / "a", attention_outputs=True)
    assert not made
    regard.open(tmp_path / "a")
    assert len(made) == len(trace.attention)


def test_key_heads_that_nobody_needs_are_left_out(tmp_path: Path) -> None:
    trace = traced(make_model("llama", num_attention_heads=6, num_key_value_heads=2), IDS)
    for heads, groups in (([0, 1], 1), ([3], 1), ([2, 5], 2), ([0, 1, 4], 3)):
        trace.save(tmp_path / "a", heads=heads)
        opened = regard.open(tmp_path / "a")
        assert opened.attention[1].key.shape[1] == opened.values[1].shape[0] == groups
        torch.testing.assert_close(opened.attention[1].dense(), trace.attention[1].dense()[heads], atol=1e-6, rtol=0)


def test_a_projection_that_traces_share_is_stored_once(bank: Any, minilm: Any, tmp_path: Path) -> None:
    bank[0].save(tmp_path / "one", attention_outputs=True)
    regard.save([bank[0], bank[1], bank[0]], tmp_path / "three", attention_outputs=True)
    names = list(safetensors.torch.load_file(tmp_path / "three"))
    assert [name for name in names if "3.attention_output.weight" in name] == ["0.attention.3.attention_output.weight"]
    assert not [name for name in names if name.startswith("2.")]  # the same trace twice is stored once
    assert not [name for name in names if name.endswith("states.6")]  # it is the contextual embedding
    one = regard.open(tmp_path / "three")[1]
    assert torch.equal(one.attention_outputs[3].weight, minilm.model.encoder.layer[3].attention.output.dense.weight)


@pytest.mark.parametrize(("dtype", "bits"), [(torch.bfloat16, 8), ("float16", 11)])
def test_narrower_numbers_say_how_far_off_they_are(bank: Any, tmp_path: Path, dtype: Any, bits: int) -> None:
    bank[0].save(tmp_path / "whole")
    bank[0].save(tmp_path / "a", dtype=dtype, heads=[2, 7])
    opened = regard.open(tmp_path / "a")
    name = str(dtype).removeprefix("torch.")
    (note,) = [note for note in opened.status.notes if note.startswith("stored as")]
    found = re.fullmatch(rf"stored as {name}: weights within (\S+) of those traced, on 48 rows compared", note)
    assert found is not None
    off = [(a.dense()[[2, 7]] - b.dense()).abs() for a, b in zip(bank[0].attention, opened.attention, strict=True)]
    measured = max(float(each[:, [0, 4, 9, 13]].max()) for each in off)
    assert float(found[1]) == pytest.approx(measured, rel=0.06)
    assert 0 < measured < 2.0**-bits * 8
    assert opened.contextual.dtype == getattr(torch, name)
    torch.testing.assert_close(opened.contextual.float(), bank[0].contextual, atol=2e-6, rtol=2.0**-bits)
    assert (tmp_path / "a").stat().st_size < 0.5 * (tmp_path / "whole").stat().st_size
    bank[0].save(tmp_path / "b", dtype=torch.float32)  # no wider than it was, nothing to be noted
    same(bank[0], regard.open(tmp_path / "b"))


def test_large_tensors_are_written_in_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = traced(make_model("gpt2"), IDS)
    trace.save(tmp_path / "a", attention_outputs=True)
    trace.save(tmp_path / "b", heads=[0, 2], dtype="float16")
    monkeypatch.setattr("regard.tensor_files.pieces.CHUNK", 40)  # bytes: five rows of a head are 160
    trace.save(tmp_path / "c", attention_outputs=True)
    trace.save(tmp_path / "d", heads=[0, 2], dtype="float16")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "c").read_bytes()
    assert (tmp_path / "b").read_bytes() == (tmp_path / "d").read_bytes()


def test_what_a_model_would_say_is_spelled_without_it(tmp_path: Path) -> None:
    from regard.explain.texts.summary import summarise

    tokenizer = tokenizers.words(["the river bank was wide and the money was in the other bank by the old mill " * 3])
    torch.manual_seed(0)
    config = TransformerConfig.nanogpt(len(tokenizer), length=20, layers=2, d_model=16, heads=2)
    trace = Model(Transformer(config).eval(), tokenizer, name="small").trace("the river bank was wide")
    right = summarise([trace], "bank", top=7).predictions
    words = [each.text for prediction in right for each in prediction.candidates]
    assert not any(word.startswith("id ") for word in words)
    assert set(words) - set(trace.text.split()), "words that are not in the text"
    for dtype in (None, "bfloat16"):
        trace.save(tmp_path / "a", dtype=dtype)
        opened = regard.open(tmp_path / "a")
        again = summarise([opened], "bank", top=7).predictions
        assert [each.text for p in again for each in p.candidates if p.candidates] != []
        assert not any(each.text.startswith("id ") for p in again for each in p.candidates)
        if dtype is None:
            assert again == right
        opened.save(tmp_path / "b")  # what was opened and saved anew tells it still
        assert summarise([regard.open(tmp_path / "b")], "bank", top=7).predictions == again


MEMORY = """
import resource, sys, torch, regard
from tests.support.attention_outputs import make_model, traced
trace = traced(make_model("bert"), torch.tensor([[7, 11, 13]]))
trace.logits = torch.ones(3, 1 << 20)                            # 12 MiB, and now 20 of them
trace.hidden_states = tuple(torch.full((3, 1 << 20), float(n)) for n in range(20))
trace.contextual = trace.hidden_states[-1]
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
regard.save(trace, sys.argv[1])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.long  # 7 s: a file of 250 MB
@pytest.mark.skipif(sys.platform != "linux", reason="measures memory in the way of Linux")
def test_memory_to_save_is_that_of_a_tensor_and_to_open_of_what_is_looked_at(tmp_path: Path) -> None:
    file = tmp_path / "a"
    command = [sys.executable, "-W", "ignore", "-c", MEMORY, str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert int(done.stdout) < 16 << 10  # KiB; the traces take 250 MiB
    assert file.stat().st_size > 250 << 20

    def resident() -> int:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

    start = resident()
    opened = regard.open(file)
    assert resident() - start < 4 << 20
    assert float(opened.hidden_states[7].sum()) == 7 * 3 * (1 << 20)
    assert resident() - start < 20 << 20
