"""What may be chosen of a trace that is saved."""

from pathlib import Path
from typing import Any

import torch

import regard
from tests.support.attention_outputs import make_model, traced
from tests.support.trace_files import refused

IDS = torch.tensor([[7, 11, 13, 17, 19]])


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
