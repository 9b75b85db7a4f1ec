"""Which checkpoints stay, and in which order steps are told, beyond the digits that their names are padded to."""

from pathlib import Path

import torch

import regard
from regard.nn.config import TransformerConfig
from regard.nn.folder import newest
from regard.nn.transformer import Transformer
from regard.text import tokenizers
from regard.train.checkpoint import TrainingState, files_by_step, load_checkpoint, save_checkpoint
from regard.train.loop import optimiser_of
from regard.train.samples import open_watched
from regard.train.settings import Settings


def test_names_sort_as_numbers_beyond_a_million_steps(tmp_path: Path) -> None:
    model = Transformer(TransformerConfig(vocabulary=7, kind="decoder", layers=1, d_model=8, heads=2, length=5))
    optimiser = optimiser_of(model, Settings())
    model(torch.tensor([[1, 2]])).logits.sum().backward()
    optimiser.step()
    tokenizer = tokenizers.characters(["abc"])
    for step in (999_998, 999_999, 1_000_000, 1_000_001):
        save_checkpoint(tmp_path, model, tokenizer, optimiser, TrainingState(step), keep=2)
    assert [step for step, _ in files_by_step(tmp_path / "checkpoints")] == [1_000_000, 1_000_001]
    assert newest(tmp_path).name == "step-1000001"
    assert load_checkpoint(tmp_path, model, optimiser)[0].step == 1_000_001


def test_watched_steps_are_told_in_their_order(tmp_path: Path, bank: object) -> None:
    (tmp_path / "watch").mkdir()
    for name in ("step-1000000", "step-999900", "step-000000", "step-abc"):
        regard.save(bank[0], tmp_path / "watch" / f"{name}.safetensors", layers=[0])  # type: ignore[index]
    assert [step for step, _ in open_watched(tmp_path)] == [0, 999_900, 1_000_000]
