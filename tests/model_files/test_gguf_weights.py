"""Weights of GGUF files that stay quantised give what they give when the whole file is raised to float32."""

from pathlib import Path

import pytest
import torch

import regard
from regard.explain.causes.outcomes import Outcome
from regard.model_files import gguf_header, gguf_weights
from regard.model_files.stored_weight import StoredWeight
from regard.models.model import Model
from tests.model_files.gguf_files import LAYERS, gguf, write_gguf

pytest.importorskip("accelerate", reason="the package accelerate is not installed (extra gguf)")

IDS = [1, 12, 9, 36, 4, 12, 7]
MATRICES = {"llama": 7 * LAYERS, "gemma3": 7 * LAYERS, "gpt2": 4 * LAYERS, "qwen3moe": 6 * LAYERS}
OTHERS = {"llama": 1, "gemma3": 1, "gpt2": 2, "qwen3moe": 2 + LAYERS}  # tables, a head, routers
CASES = [
    *(("llama", kind) for kind in ("Q4_0", "Q4_1", "Q8_0", "Q3_K", "Q4_K", "Q6_K", "F16", "BF16")),
    ("gemma3", "Q4_1"), ("gpt2", "Q5_0"), ("qwen3moe", "Q8_0"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def every_matrix_is_kept(monkeypatch) -> None:
    monkeypatch.setattr(gguf_weights, "LEAST", 1)
    monkeypatch.setattr(gguf_header, "LONG", 10)  # so that a vocabulary is passed over


def kept(model: Model) -> int:
    return sum(isinstance(each, StoredWeight) for each in model.model.parameters())


def both(file: Path) -> tuple[Model, Model]:
    stored, whole = (regard.load(file, device="cpu", dtype=dtype) for dtype in ("auto", "float32"))
    assert kept(whole) == 0
    return stored, whole


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_weights_are_the_same_and_so_is_what_comes_of_them(family: str, kind: str, tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", family, kind)
    stored, whole = both(tmp_path / "tiny.gguf")
    assert kept(stored) == MATRICES[family] + OTHERS[family]
    theirs = dict(whole.model.named_parameters())
    for name, weight in stored.model.named_parameters():
        assert torch.equal(weight + 0, theirs[name]), name
    ours, theirs = stored.trace(ids=IDS), whole.trace(ids=IDS)
    assert "for each product" in ours.status.notes[0]
    assert ours.status.notes[0].split(")")[0] == theirs.status.notes[0].split(")")[0]
    assert ours.status.difference < 5e-6
    for one, two in zip(ours.hidden_states, theirs.hidden_states, strict=True):
        torch.testing.assert_close(one, two, atol=1e-5 * max(1.0, float(two.abs().max())), rtol=0)
    for one, two in zip(ours.attention, theirs.attention, strict=True):
        torch.testing.assert_close(one.dense(), two.dense(), atol=1e-5, rtol=0)
    torch.testing.assert_close(ours.logits, theirs.logits, atol=1e-5, rtol=0)


def test_explanations_and_what_is_saved_are_those_of_the_whole(tmp_path: Path) -> None:
    """Contributions, gradients, interventions, generation, hashes and files read the weights too."""
    write_gguf(tmp_path / "tiny.gguf", "llama", "Q4_1")
    found, saved = [], []
    for model in both(tmp_path / "tiny.gguf"):
        trace = model.trace(ids=IDS)
        changed = model.trace(ids=IDS, interventions=[regard.ablate(regard.head(1, 2))])
        written = model.generate(ids=IDS, max_new_tokens=3)
        scores = model.attribute_to_tokens(trace, Outcome("a logit", lambda run: run.sides[-1].logits[-1, 7]), steps=3)
        direct = torch.tensor([each["adds"] for each in model.attribution(trace, len(IDS) - 1, 7).rows()])
        parts = trace.attention_outputs[0].weight.double()
        found.append((changed.last_hidden_state, written.trace.last_hidden_state, parts, scores.scores, direct))
        torch.save(model.model.state_dict(), tmp_path / "saved.pt")
        saved.append(torch.load(tmp_path / "saved.pt", weights_only=True))
    for ours, theirs in zip(*found, strict=True):
        assert ours.numel() > 0
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    assert saved[0].keys() == saved[1].keys()
    assert all(torch.equal(saved[0][name], each) for name, each in saved[1].items())


def test_experts_whose_matrices_are_of_two_kinds_are_raised(tmp_path: Path) -> None:
    write_gguf(tmp_path / "tiny.gguf", "qwen3moe", "Q8_0", "Q4_1")
    stored, whole = both(tmp_path / "tiny.gguf")
    assert kept(stored) == MATRICES["qwen3moe"] + OTHERS["qwen3moe"] - LAYERS
    torch.testing.assert_close(stored.trace(ids=IDS).logits, whole.trace(ids=IDS).logits, atol=1e-5, rtol=0)


def test_numbers_that_are_none_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "tiny.gguf"
    write_gguf(file, "llama", "Q4_1")
    reader = gguf.GGUFReader(file, "r+")
    found = next(each for each in reader.tensors if each.name == "blk.1.ffn_up.weight")
    found.data[3, 40:42] = 0xFF  # a scale
    reader.data.flush()
    with pytest.raises(
        regard.RegardError, match=r"its weights hold NaN, in tensor 'model.layers.1.mlp.up_proj.weight'"
    ):
        regard.load(file, device="cpu")
