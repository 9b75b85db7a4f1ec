"""Shards built in processes: the same bytes, however many there are, whoever is killed, and however often."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regard.corpus.embed_texts import EmbedProgress, embed
from regard.corpus.schema import read_manifest
from regard.corpus.settings import Settings
from tests.support import make_tiny
from tests.support.corpora import leftovers, read_rows, store_digest, write_texts

SMALL = Settings(shard=700)
FLAGS = ["--shard", "2000"]


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    write_texts(tmp_path / "texts", 40)
    return "texts"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, minilm: Any) -> Path:
    made = tmp_path_factory.mktemp("models") / "tiny"
    make_tiny(made, minilm)
    return made


def started(*arguments: str) -> "subprocess.Popen[str]":
    """The command in a process group of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "regard", "embed", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip


def children(pid: int) -> list[int]:
    """The processes that a process started, and that run."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
            if entry.name.isdigit() and int(parent) == pid and state != "Z":
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def workers_of(pid: int) -> list[int]:
    """The worker processes of a run: not Python's tracker of resources."""
    return [each for each in children(pid) if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]


def until(what: Any, seconds: float = 60) -> Any:
    """Wait for what gives something true."""
    end = time.monotonic() + seconds
    while not (given := what()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return given


def shards(store: str) -> list[Path]:
    """The finished shards of a store."""
    folder = Path(store, "shards")
    return [each for each in folder.iterdir() if not each.name.startswith(".")] if folder.is_dir() else []


@pytest.fixture
def group() -> Iterator[list["subprocess.Popen[str]"]]:
    """Runs whose process groups are ended with the test."""
    begun: list[subprocess.Popen[str]] = []
    yield begun
    for each in begun:
        end(each)


def end(run: "subprocess.Popen[str]") -> None:
    """Kill a run and all that it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(run.pid, signal.SIGKILL)
    run.communicate()


@pytest.mark.long  # 20 s: processes, each with its own start
def test_the_same_bytes_with_any_number_of_processes(texts: str, folder: Path) -> None:
    embed(texts, "one", model=folder, settings=SMALL, workers=1)
    embed(texts, "two", model=folder, settings=SMALL, workers=2)
    assert len(shards("one")) > 10
    assert store_digest(Path("one")) == store_digest(Path("two"))
    from unittest import mock

    with mock.patch("regard.corpus.writing.workers.build", side_effect=AssertionError):
        assert embed(texts, "one", model=folder, settings=SMALL, workers=2).built == 0


@pytest.mark.long
def test_the_same_bytes_of_a_loaded_model(texts: str, minilm: Any) -> None:
    embed(texts, "processes", settings=Settings(shard=5000), workers=2)
    embed(texts, "here", settings=Settings(shard=5000), model=minilm)
    assert store_digest(Path("processes")) == store_digest(Path("here"))


@pytest.mark.long
def test_a_script_needs_no_guard(texts: str, folder: Path, tmp_path: Path) -> None:
    """Workers do not run the script that started them again."""
    script = f"""
import regard.corpus
print("once")
report = regard.corpus.embed("texts", "store", model={str(folder)!r}, workers=2)
print(report.counts["documents"])
"""
    (tmp_path / "script.py").write_text(script)
    done = subprocess.run([sys.executable, "script.py"], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "once\n40\n", "")
    assert read_manifest(Path("store")).complete


@pytest.mark.long
def test_an_interrupted_run_does_not_wait_for_its_workers(texts: str, folder: Path) -> None:
    def stop(_: EmbedProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as held:  # whose traceback keeps the run's frames, and what they wait for
        embed(texts, "store", model=folder, settings=SMALL, workers=2, progress=stop)
    assert not workers_of(os.getpid())
    assert held.value.__traceback__ is not None
    assert not leftovers(Path("store"))
    embed(texts, "store", model=folder, settings=SMALL, workers=1)
    embed(texts, "whole", model=folder, settings=SMALL, workers=1)
    assert store_digest(Path("store")) == store_digest(Path("whole"))


@pytest.mark.parametrize(
    "kills", [pytest.param(3, marks=pytest.mark.long), pytest.param(10, marks=pytest.mark.nightly)]
)
def test_killed_at_random_moments(texts: str, group: list["subprocess.Popen[str]"], kills: int) -> None:
    """All of the run's processes at once, with SIGKILL; then the same bytes, nothing twice, nothing lost or left."""
    for n in range(2):
        write_texts(Path(texts, str(n)), 80, seed=n + 1, longest=120)
    begin = time.monotonic()
    whole = started(texts, "--out", "whole", *FLAGS, "--workers", "2")
    group.append(whole)
    _, said = whole.communicate()
    taken = time.monotonic() - begin
    assert whole.returncode == 0, said
    draw, counts = random.Random(7), []
    for kill in range(kills):
        run = started(texts, "--out", "store", *FLAGS, "--workers", "2")
        group.append(run)
        # every other one while shards are written, the others anywhere, also before there is a store
        if kill % 2:
            before = len(shards("store"))
            until(lambda before=before, run=run: len(shards("store")) > before or run.poll() is not None)
            time.sleep(draw.uniform(0, taken / 20))
        else:
            time.sleep(draw.uniform(0, taken / 2))
        end(run)
        counts.append(len(shards("store")))
    assert counts == sorted(counts)
    assert len(set(counts)) > kills * 3 // 10
    last = started(texts, "--out", "store", *FLAGS, "--workers", "1")
    group.append(last)
    _, said = last.communicate()
    assert last.returncode == 0, said
    assert not leftovers(Path("store"))
    assert store_digest(Path("store")) == store_digest(Path("whole"))
    rows, _ = read_rows(Path("store"))
    places = [(row["document"], row["start"]) for row in rows]
    assert len(set(places)) == len(places) == read_manifest(Path("whole")).counts["rows"]


@pytest.mark.long
def test_workers_end_with_their_parent(texts: str, group: list["subprocess.Popen[str]"]) -> None:
    run = started(texts, "--out", "store", "--shard", "500", "--workers", "2")
    group.append(run)
    until(lambda: len(workers_of(run.pid)) == 2 and shards("store"))
    own = workers_of(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    until(lambda: not any(Path(f"/proc/{each}").exists() for each in own), seconds=10)


@pytest.mark.long
def test_a_killed_worker_is_told_and_the_run_goes_on(texts: str, group: list["subprocess.Popen[str]"]) -> None:
    for n in range(3):
        write_texts(Path(texts, str(n)), 150, seed=n + 1, longest=120)
    run = started(texts, "--out", "store", *FLAGS, "--workers", "2")
    group.append(run)
    until(lambda: shards("store"))
    os.kill(workers_of(run.pid)[0], signal.SIGKILL)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (2, "")
    lines = [line for line in err.splitlines() if " tokens/s" not in line]  # of progress
    assert len(lines) == 1, err
    assert "a worker was ended before its shard was written" in lines[0]
    assert not leftovers(Path("store"))
    there = len(shards("store"))
    report = embed(texts, "store", settings=Settings(shard=2000), workers=1)
    assert report.built == len(shards("store")) - there
    assert read_manifest(Path("store")).complete
