"""The loop: it learns one batch by heart, adds parts up to the same update, and stops where numbers end."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard import RegardError
from regard.nn.config import TransformerConfig
from regard.nn.transformer import Transformer
from regard.train.data import Batch
from regard.train.loop import loss_of, optimiser_of, train, validate
from regard.train.run_folder import TrainingState
from regard.train.settings import Settings, with_changes

SETTINGS = Settings(steps=120, rate=1e-2, warmup=5, decay=0.0, evaluate_every=0, save_every=0, beta2=0.98)

SMALL = ["layers=1", "d_model=16", "heads=2", "block=9", "batch=6", "evaluate_every=0", "sample_every=0", "warmup=2"]


class Always:
    """The same batches every time, one after another."""

    def __init__(self, *batches: Batch) -> None:
        self.batches = batches

    def batch(self, place: tuple[int, int]) -> tuple[Batch, tuple[int, int]]:
        return self.batches[place[1] % len(self.batches)], (0, place[1] + 1)

    def validation(self, most: int | None = None):
        yield from self.batches


def small(kind: str = "decoder", **changes: object) -> Transformer:
    torch.manual_seed(0)
    sizes = {"layers": 2, "d_model": 24, "heads": 3, "length": 31, "start": 0 if kind == "encoder-decoder" else None}
    return Transformer(TransformerConfig(vocabulary=23, kind=kind, **(sizes | changes)))


def some(kind: str = "decoder") -> Batch:
    torch.manual_seed(1)
    ids = torch.randint(23, (5, 12))
    if kind == "decoder":
        return Batch(ids[:, :-1], ids[:, 1:])
    return Batch(ids[:, :-1], ids[:, 1:], None, torch.randint(23, (5, 7)), torch.ones(5, 7, dtype=torch.bool))


def go(model: Transformer, data: Always, settings: Settings, saved: list[TrainingState] | None = None) -> TrainingState:
    kept = [] if saved is None else saved
    return train(
        model, data, optimiser_of(model, settings), settings, TrainingState(), save=kept.append, on_log=lambda _: None
    )


@pytest.mark.parametrize("kind", ["decoder", "encoder-decoder"])
def test_one_batch_is_learned_by_heart(kind: str) -> None:
    model, data = small(kind), Always(some(kind))
    assert validate(model, data.validation(), SETTINGS) > 2.5
    done = go(model, data, SETTINGS)
    assert done.step == 120
    assert done.best is not None
    assert done.best < 0.05


def test_parts_of_an_update_add_up() -> None:
    whole = some()
    parts = [whole.rows_of_process(0, 2), whole.rows_of_process(1, 2)]  # of unlike sizes: three rows and two
    settings = replace(SETTINGS, steps=3, warmup=1)
    one, two = small().double(), small().double()  # in float32 Adam makes 3e-5 of the order of a sum on some processors
    go(one, Always(whole), settings)
    go(two, Always(*parts), replace(settings, accumulate=2))
    for a, b in zip(one.parameters(), two.parameters(), strict=True):
        torch.testing.assert_close(a, b, atol=1e-9, rtol=1e-7)


def test_the_loss_is_cross_entropy_in_nats() -> None:
    model, batch = small(), some()
    logits = model(batch.ids).logits
    expected = -logits.log_softmax(-1).gather(-1, batch.labels[..., None]).sum()
    torch.testing.assert_close(loss_of(model, batch, SETTINGS), expected)


def test_bfloat16_keeps_float32_weights() -> None:
    model = small()
    go(model, Always(some()), replace(SETTINGS, steps=30, dtype="bfloat16"))
    assert {p.dtype for p in model.parameters()} == {torch.float32}
    assert validate(model, [some()], SETTINGS) < 2.5


def test_a_loss_that_is_no_number_stops_and_saves_nothing() -> None:
    model, saved = small(), []
    with torch.no_grad():
        model.decoder[1].feedforward_norm.weight[3] = torch.nan
    with pytest.raises(RegardError, match=r"step 0: the tensor 'decoder.1.feedforward_norm.weight' isn't finite"):
        go(model, Always(some()), replace(SETTINGS, save_every=1), saved)
    assert saved == []


def test_weights_that_grow_without_end_are_not_saved() -> None:
    model, saved = small(), []
    wild = with_changes(SETTINGS, {"rate": 1e30, "warmup": 0, "save_every": 1, "clip": 0.0})
    with pytest.raises(RegardError, match=r"step \d+: the (tensor|output of) '"):
        go(model, Always(some()), wild, saved)
    for progress in saved:
        assert progress.step < 3


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "log.jsonl").read_text().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["text", "pairs"])
def test_two_processes_come_to_the_losses_of_one(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("accelerate", reason="needs the extra distributed (accelerate)")
    file = tmp_path / "data"
    if kind == "text":
        file.write_text("the river bank and the money bank " * 40)
        given = [str(file)]
    else:
        file.write_text("".join(f"word{n} and word{n + 1}\tmot{n} et mot{n + 1}\n" for n in range(60)))
        given = ["--pairs", str(file), "--set", "held_out=5", "--set", "vocabulary=300", "--set", "dropout=0"]
    options = [each for setting in SMALL for each in ("--set", setting)]
    if kind == "pairs":
        options += ["--set", "batch=60", "--set", "block=40"]
    code = "import sys; from regard.cli.main import main; main(sys.argv[1:])"

    def start(run: str, **environment: str) -> subprocess.Popen[str]:
        arguments = ["train", *given, "--out", str(tmp_path / run), "--steps", "7", *options]
        return subprocess.Popen(
            [sys.executable, "-c", code, *arguments], env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    where = {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    team = [start("two", RANK=rank, LOCAL_RANK=rank, ACCELERATE_USE_CPU="true", **where) for rank in ("0", "1")]
    alone = start("one")
    for process in (alone, *team):
        _, told = process.communicate(timeout=240)
        assert process.returncode == 0, told
    one, two = losses(tmp_path / "one"), losses(tmp_path / "two")
    assert len(one) == len(two) == 7
    assert one == pytest.approx(two, rel=1e-5)
    assert one[-1] < one[0]
