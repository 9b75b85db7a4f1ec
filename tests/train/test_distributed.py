"""Two processes train together on CPU, and come to the losses of one."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("accelerate", reason="needs the extra distributed (accelerate)")

SMALL = ["layers=1", "d_model=16", "heads=2", "block=9", "batch=6", "evaluate_every=0", "sample_every=0", "warmup=2"]


def free_port() -> int:
    with socket.socket() as opened:
        opened.bind(("127.0.0.1", 0))
        return int(opened.getsockname()[1])


def losses(run: Path) -> list[float]:
    return [json.loads(line)["loss"] for line in (run / "log.jsonl").read_text().splitlines()]


@pytest.mark.long
@pytest.mark.parametrize("kind", ["text", "pairs"])
def test_two_processes_come_to_the_losses_of_one(kind: str, tmp_path: Path) -> None:
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
