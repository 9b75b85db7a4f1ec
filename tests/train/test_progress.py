"""A run that is looked at from outside: how far it is, and whether it still goes on."""

import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from regard.errors import RegardError
from regard.files import LOCK
from regard.train.follow import save_watched_trace
from regard.train.progress import FollowedRun
from regard.train.run import RunOptions, prepare_repeated_run, run_training
from regard.train.run_files import LOG, read_log
from regard.train.settings import Settings

STEPS = 12
SETTINGS = Settings.for_repeated(
    layers=1, d_model=16, heads=2, d_hidden=16, steps=STEPS, batch=4, evaluate_every=5, save_every=5
)


@pytest.fixture
def begun(tmp_path: Path) -> Iterator[Any]:
    """A run that is prepared, and whose folder is locked."""
    run = prepare_repeated_run(tmp_path / "run", SETTINGS)
    yield run
    if run.lock is not None:
        run.lock.release()


def test_it_is_looked_at_while_it_trains(begun: Any) -> None:
    followed, seen = FollowedRun(begun.folder), []
    first = followed.look()
    assert (first.step, first.going, first.left) == (0, "trains", None)

    def look(step: int) -> None:
        if step % 4 == 0:
            save_watched_trace(begun, begun.watched, step)
        seen.append(followed.look())

    run_training(begun, on_log=lambda _: None, on_step_end=look)
    log = read_log(begun.folder)
    assert [now.step for now in seen] == list(range(1, STEPS + 1))
    assert {now.going for now in seen} == {"trains"}
    for n, now in enumerate(seen, 1):
        assert now.log == log[:n]
        assert now.checkpoint == (None if n < 5 else STEPS if n == STEPS else n // 5 * 5)
        assert now.watched == list(range(4, n + 1, 4))
        mean = sum(each["seconds"] for each in log[:n]) / n  # type: ignore[misc]
        assert now.left == pytest.approx((STEPS - n) * mean)
    assert len({now.mark for now in seen}) == 1 + STEPS // 4
    last = followed.look()
    assert (last.going, last.left) == ("ended", None)


def test_what_trains_is_told_from_what_stopped_and_what_broke_off(begun: Any) -> None:
    followed = FollowedRun(begun.folder)
    old = time.time() - 300
    for path in begun.folder.iterdir():
        os.utime(path, (old, old))
    quiet = followed.look()
    assert (quiet.going, round(quiet.silence, -1)) == ("silent", 300)
    begun.lock.release()
    assert followed.look().going == "not begun"
    run_training(begun, on_log=lambda _: None)
    lines = (begun.folder / LOG).read_text().splitlines(keepends=True)
    for steps, going in ((STEPS, "ended"), (11, "broken off"), (10, "stopped")):
        (begun.folder / LOG).write_text("".join(lines[:steps]))
        assert followed.look().going == going
        (begun.folder / "latest.json").write_text(json.dumps({"checkpoint": "step-000010"}))
        if steps == STEPS:
            assert followed.look().going == "broken off"  # after its last step, before that was saved
    (begun.folder / LOCK).unlink()
    assert followed.look().going == "stopped"


def test_samples_have_lines_of_their_own(begun: Any) -> None:
    followed, file = FollowedRun(begun.folder), begun.folder / "samples.txt"
    begun.lock.release()
    info = replace(begun.settings, sample_every=5, steps=12)
    record = json.loads((begun.folder / "run.json").read_text())
    (begun.folder / "run.json").write_text(json.dumps(record | {"settings": info.as_json()}))
    written = ("step 5: a\nb\nstep 7: no step of samples\n", "step 10: c", "step 10: once more", "step 12: שלום", "")
    file.write_text("\n".join(written), "utf-8")
    now = followed.look()
    assert [(each.step, each.text) for each in now.samples] == [
        (5, "a\nb\nstep 7: no step of samples"), (10, "once more"), (12, "שלום"),
    ]  # fmt: skip
    assert not now.samples_cut
    file.write_text("".join(f"step {n}: {'x' * 1000}\n" for n in range(5, 5000, 5)), "utf-8")
    now = followed.look()
    assert now.samples_cut
    assert 200 < len(now.samples) < 300
    assert now.samples[-1].step == 4995
    assert {len(each.text) for each in now.samples} == {1000}


def test_what_is_no_run_is_refused(begun: Any, tmp_path: Path) -> None:
    with pytest.raises(RegardError, match="no folder .*needs a run"):
        FollowedRun(tmp_path / "nowhere")
    with pytest.raises(RegardError, match="is no training run"):
        FollowedRun(tmp_path)
    followed = FollowedRun(begun.folder)
    (begun.folder / "latest.json").write_text(json.dumps({"checkpoint": "../../etc"}))
    with pytest.raises(RegardError, match="latest.json"):
        followed.look()
    begun.folder.rename(tmp_path / "moved")
    with pytest.raises(RegardError, match="is gone"):
        followed.look()
    (begun.folder).mkdir()
    with pytest.raises(RegardError, match="is no training run"):
        followed.look()


def test_a_run_without_a_watch_is_one(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("to be or not to be " * 60)
    from regard.train.run import prepare_text_run

    run = prepare_text_run([text], tmp_path / "run", replace(SETTINGS, positions="learned"), RunOptions())
    now = FollowedRun(run.folder).look()
    assert (now.watched, now.mark, now.samples) == ([], "", [])
    if run.lock is not None:
        run.lock.release()
