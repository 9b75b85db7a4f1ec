"""What training takes is held against the device that it runs on, before a model is made."""

from pathlib import Path

import pytest
import torch

import regard
from regard import memory
from regard.nn.config import TransformerConfig
from regard.train.run_folder import check_space, read_run_info, training_device, training_memory
from regard.train.settings import Settings

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
    with pytest.raises(regard.RegardError, match=r"a checkpoint that is written needs .* MiB of memory, 1\.0 MiB are"):
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
