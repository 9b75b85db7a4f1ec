"""A run is a folder; which checkpoints stay, and in which order steps are told, beyond the digits of their names."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import regard
from regard import memory
from regard.errors import RegardError
from regard.nn.config import TransformerConfig
from regard.nn.folder import newest_transformer_folder
from regard.nn.transformer import Transformer
from regard.text import tokenizers
from regard.train.evolve import open_watched
from regard.train.loop import optimiser_of
from regard.train.run_folder import (
    TrainingState,
    check_space,
    load_checkpoint,
    read_run_info,
    remove_run_leftovers,
    run_files_by_step,
    save_checkpoint,
    training_device,
    training_memory,
)
from regard.train.settings import Settings


def test_names_sort_as_numbers_beyond_a_million_steps(tmp_path: Path) -> None:
    model = Transformer(TransformerConfig(vocabulary=7, kind="decoder", layers=1, d_model=8, heads=2, length=5))
    optimiser = optimiser_of(model, Settings())
    model(torch.tensor([[1, 2]])).logits.sum().backward()
    optimiser.step()
    tokenizer = tokenizers.characters(["abc"])
    for step in (999_998, 999_999, 1_000_000, 1_000_001):
        save_checkpoint(tmp_path, model, tokenizer, optimiser, TrainingState(step), keep=2)
    assert [step for step, _ in run_files_by_step(tmp_path / "checkpoints")] == [1_000_000, 1_000_001]
    assert newest_transformer_folder(tmp_path).name == "step-1000001"
    assert load_checkpoint(tmp_path, model, optimiser)[0].step == 1_000_001


def test_watched_steps_are_told_in_their_order(tmp_path: Path, bank: object) -> None:
    (tmp_path / "watch").mkdir()
    for name in ("step-1000000", "step-999900", "step-000000", "step-abc"):
        regard.save(bank[0], tmp_path / "watch" / f"{name}.safetensors", layers=[0])  # type: ignore[index]
    assert [step for step, _ in open_watched(tmp_path)] == [0, 999_900, 1_000_000]


@pytest.fixture
def run(tmp_path: Path) -> tuple[Path, Transformer, torch.optim.Optimizer]:
    """A folder with one checkpoint, of step 7."""
    model = Transformer(TransformerConfig(vocabulary=7, kind="decoder", layers=1, d_model=8, heads=2, length=5))
    optimiser = optimiser_of(model, Settings())
    model(torch.tensor([[1, 2]])).logits.sum().backward()
    optimiser.step()
    save_checkpoint(tmp_path, model, tokenizers.characters(["abc"]), optimiser, TrainingState(7, (0, 7), 1.5), keep=2)
    return tmp_path, model, optimiser


def test_notes_that_do_not_fit(run: Any) -> None:
    folder, model, optimiser = run
    assert load_checkpoint(folder, model, optimiser)[0] == TrainingState(7, (0, 7), 1.5)
    file = folder / "checkpoints" / "step-000007" / "training.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"place": [0]}))
    with pytest.raises(RegardError, match="training.json' is damaged"):
        load_checkpoint(folder, model, optimiser)


@pytest.mark.parametrize(
    ("tensors", "says"),
    [
        ({"count": torch.zeros(3)}, "'count' is missing or does not fit"),
        ({"random": torch.zeros(7, dtype=torch.uint8)}, "'random' is missing or does not fit"),
        ({"mean.embeddings.tokens.weight": torch.zeros(2, 3)}, "is missing or does not fit|belongs"),
    ],
)
def test_a_state_that_does_not_fit(run: Any, tensors: dict[str, torch.Tensor], says: str) -> None:
    folder, model, optimiser = run
    file = folder / "checkpoints" / "step-000007" / "training.safetensors"
    held = safetensors.torch.load_file(file)
    name = next(iter(tensors))
    if name not in held:  # another name of the same thing
        name = next(each for each in held if each.startswith("mean."))
    safetensors.torch.save_file(held | {name: next(iter(tensors.values()))}, file)
    with pytest.raises(RegardError, match=says) as said:
        load_checkpoint(folder, model, optimiser)
    assert "\n" not in str(said.value)


@pytest.mark.parametrize("name", ["training.json", "training.safetensors", "model.safetensors"])
@pytest.mark.parametrize("content", [None, b"", b"caf\xe9", b"{" * 999])
def test_files_that_are_none_are_one_line_and_not_waited_for(run: Any, name: str, content: bytes | None) -> None:
    folder, model, optimiser = run
    file = folder / "checkpoints" / "step-000007" / name
    file.unlink()
    if content is None:
        os.mkfifo(file)
    else:
        file.write_bytes(content)
    with pytest.raises(RegardError, match=name) as said:
        load_checkpoint(folder, model, optimiser)
    assert "\n" not in str(said.value)


def test_what_killed_processes_left_is_removed(run: Any) -> None:
    folder, _, _ = run
    (folder / "watch").mkdir()
    left = [folder / ".regard-abcd1234.part.json", folder / "watch" / ".regard-abcd1234.part.safetensors"]
    for file in left:
        file.write_text("half")
    (folder / "checkpoints" / ".step-000008.part").mkdir()
    remove_run_leftovers(folder)
    assert not any(file.exists() for file in left)
    assert [each.name for each in (folder / "checkpoints").iterdir()] == ["step-000007"]


CONFIG = TransformerConfig(vocabulary=5000, length=128, layers=4, d_model=512)
SETTINGS = Settings(batch=64, block=128)


@pytest.fixture
def machine(monkeypatch):
    """A machine with so many bytes free on each kind of device; "cuda" only where it is named."""

    def set_up(**free: int) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in free)
        monkeypatch.setattr(memory, "available", lambda device: free[device.type])

    return set_up


def test_on_a_gpu_its_memory_counts(machine, tmp_path: Path) -> None:
    need = training_memory(CONFIG, SETTINGS)
    machine(cuda=need, cpu=1 << 30)  # the GPU has room, the CPU alone would not have
    assert need > 1 << 30
    assert training_device() == torch.device("cuda")
    check_space(tmp_path / "run", CONFIG, SETTINGS)
    machine(cuda=need - 1, cpu=1 << 40)
    with pytest.raises(regard.RegardError, match="training 8,192 tokens at a time needs .* GiB of memory"):
        check_space(tmp_path / "run", CONFIG, SETTINGS)
    machine(cuda=need, cpu=1 << 20)
    with pytest.raises(regard.RegardError, match=r"a checkpoint that is written needs .* MiB of memory, only 1\.0 MiB"):
        check_space(tmp_path / "run", CONFIG, SETTINGS)


def test_without_one_the_cpus_memory_counts(machine, tmp_path: Path) -> None:
    need = training_memory(CONFIG, SETTINGS)
    machine(cpu=need)
    assert training_device() == torch.device("cpu")
    check_space(tmp_path / "run", CONFIG, SETTINGS)
    machine(cpu=need - 1)
    with pytest.raises(regard.RegardError, match="training 8,192 tokens at a time needs"):
        check_space(tmp_path / "run", CONFIG, SETTINGS)


def test_what_a_run_says_of_itself_is_read_strictly(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"regard": ' + "[" * 10**6)
    with pytest.raises(regard.RegardError, match="run.json' cannot be read: it is nested too deep"):
        read_run_info(tmp_path)
