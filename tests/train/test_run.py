"""Training runs as a person starts, kills, stops and resumes them: processes of their own, compared bit for bit."""

import json
import os
import random
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

import regard
from regard.train.follow import follow_run_in_terminal, train_and_follow
from regard.train.run import prepare_text_run, run_training, stop_training_on_interrupt
from regard.train.run_files import read_log
from regard.train.run_folder import save_checkpoint
from regard.train.settings import RunOptions, Settings
from tests.support import in_one_process

SMALL = ["--set", "layers=2", "--set", "d_model=24", "--set", "heads=3", "--set", "block=17", "--set", "batch=5"]
OFTEN = ["--set", "evaluate_every=0", "--set", "sample_every=0", "--set", "warmup=3", "--set", "dropout=0.1"]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The text that Python ships: its licence."""
    file = tmp_path_factory.mktemp("text") / "text.txt"
    drawn = random.Random(0)
    words = ["the", "river", "bank", "was", "wide", "and", "money", "was", "in", "the", "other", "bank"]
    file.write_text(" ".join(drawn.choice(words) for _ in range(3000)), encoding="utf-8")
    return file


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "regard", "train", *map(str, arguments)]


def weights(run: Path) -> dict[str, torch.Tensor]:
    pointed = json.loads((run / "latest.json").read_text())["checkpoint"]
    return safetensors.torch.load_file(run / "checkpoints" / pointed / "model.safetensors")


def train(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture(scope="module")
def whole(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 60 steps that nothing interrupted."""
    run = tmp_path_factory.mktemp("runs") / "whole"
    watched = ["--watch", "the river bank", "--set", "watch_every=20"]
    done = train(text, "--out", run, "--steps", 60, *SMALL, *OFTEN, "--set", "save_every=10", *watched)
    assert done.returncode == 0, done.stderr
    return run


@pytest.mark.long
def test_killed_at_any_moment_it_comes_to_the_same_bits(text: Path, whole: Path, tmp_path: Path) -> None:
    run, drawn, kills = tmp_path / "killed", random.Random(7), 0
    arguments = [text, "--out", run, "--steps", 60, *SMALL, *OFTEN, "--set", "save_every=1", "--resume"]
    for _ in range(40):
        log = run / "log.jsonl"
        size = log.stat().st_size if log.exists() else 0
        process = subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        until = time.monotonic() + 120
        if kills < 5:  # wait until it trains, then a little, and kill it in whatever it is doing
            while process.poll() is None and time.monotonic() < until:
                if log.exists() and log.stat().st_size > size + 300:
                    break
                time.sleep(0.002)
            time.sleep(drawn.random() * 0.05)
            process.kill()
        _, told = process.communicate(timeout=200)
        if process.returncode == -signal.SIGKILL:
            kills += 1
            continue
        assert process.returncode == 0, told
        break
    assert kills >= 3
    expected, found = weights(whole), weights(run)
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    steps = [json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines()]
    assert steps == list(range(1, 61))
    losses = [[json.loads(line)["loss"] for line in (r / "log.jsonl").read_text().splitlines()] for r in (run, whole)]
    assert losses[0] == losses[1]
    assert not list((run / "checkpoints").glob(".*"))
    assert len(list((run / "checkpoints").iterdir())) == 2


@pytest.mark.long
def test_ctrl_c_saves_and_stops(text: Path, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = [text, "--out", run, "--steps", 60, *SMALL, *OFTEN, "--set", "save_every=0"]
    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if (run / "log.jsonl").exists() and (run / "log.jsonl").read_text().count("\n") > 2:
            break
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 130, err
    assert "stopped (continue with --resume)" in out
    assert err == ""
    step = int(json.loads((run / "latest.json").read_text())["checkpoint"].removeprefix("step-"))
    assert 2 < step < 60
    done = train(*arguments, "--resume")
    assert done.returncode == 0, done.stderr
    assert f"after step {step}" in done.stdout
    assert all(torch.equal(a, weights(run)[name]) for name, a in weights(whole).items())


def started(run: Path, *arguments: object) -> "subprocess.Popen[str]":
    """A run that has begun to train; its standard output is a pipe."""
    size = (run / "log.jsonl").stat().st_size if (run / "log.jsonl").exists() else 0
    process = subprocess.Popen(
        command(*arguments, "--out", run), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < until:
        if (run / "log.jsonl").exists() and (run / "log.jsonl").stat().st_size > size + 200:
            return process
        time.sleep(0.02)
    raise AssertionError(process.communicate())


@pytest.mark.long
def test_one_process_at_a_time_trains_into_a_folder(text: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = [text, "--steps", 100_000, *SMALL, *OFTEN, "--set", "save_every=5"]
    first = started(run, *arguments)
    leftover = run / ".regard-abcd1234.part.json"  # as of a save that was killed
    leftover.write_text("{")
    taken = ["train", *arguments, "--out", run]
    both = in_one_process(tmp_path, [[str(each) for each in (*taken, *more)] for more in (["--resume"], [])])
    (one, _, resumed), (other, _, fresh) = both
    assert (one, other) == (2, 2)
    assert "another regard train is writing to it" in resumed
    assert resumed.count("\n") == 1
    assert "already has a run" in fresh
    assert first.poll() is None, "the first one goes on"
    first.kill()  # its lock dies with it
    first.communicate()
    before = json.loads((run / "latest.json").read_text())["checkpoint"]
    again = started(run, *arguments, "--resume")
    again.send_signal(signal.SIGINT)
    out, err = again.communicate(timeout=100)
    assert again.returncode == 130, err
    assert f"after step {int(before.removeprefix('step-'))}" in out
    assert not leftover.exists(), "what a killed one left is gone"


@pytest.mark.long
def test_of_two_that_begin_at_once_one_trains(text: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    arguments = command(text, "--out", run, "--steps", 3, *SMALL, *OFTEN)
    both = [subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate(timeout=200)[1] for process in both]
    assert sorted(process.returncode for process in both) == [0, 2], told
    refused = max(told, key=len)
    assert "is writing to it" in refused or "already has a run" in refused
    assert len((run / "log.jsonl").read_text().splitlines()) == 3


def test_the_first_line_comes_through_a_pipe_before_anything_is_done(text: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    process = subprocess.Popen(
        command(text, "--out", tmp_path / "run", "--steps", 100_000, *SMALL, *OFTEN), stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == f"Reading {text} …\n"
        assert time.monotonic() - began < 30  # alone on the machine: one
        line = ""
        while not line.startswith("Step 1 of 100000: loss "):
            line = process.stdout.readline()
            assert line
        assert process.poll() is None, "it came while it trains, not at its end"
    finally:
        process.kill()
        process.communicate()


@pytest.mark.long  # a process under a limit of its own trains; that files are whole or absent is in tests/test_files.py
def test_a_full_disk_keeps_the_last_good_checkpoint(text: Path, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    before = weights(run)
    code = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
from regard.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
main(sys.argv[1:])
"""
    arguments = ["train", text, "--out", run, "--steps", 70, *SMALL, *OFTEN, "--resume", "--set", "save_every=10"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "regard: error:" in done.stderr
    assert "cannot" in done.stderr
    assert all(torch.equal(a, before[name]) for name, a in weights(run).items())
    assert not list((run / "checkpoints").glob(".*"))


def test_the_run_opens_like_any_model(whole: Path) -> None:
    model = regard.load(whole)
    trace = model.trace("the river bank")
    assert trace.attention[1].shape == (3, 14, 14)
    assert trace.status.difference is not None
    assert trace.status.difference < 1e-5
    assert sorted(path.name for path in (whole / "watch").iterdir()) == [
        f"step-{n:06d}.safetensors" for n in (0, 20, 40, 60)
    ]
    kept = regard.open(whole / "watch" / "step-000060.safetensors")
    torch.testing.assert_close(kept.attention[1].dense(), trace.attention[1].dense())
    assert (whole / "loss.png").stat().st_size > 5000


def test_bad_input(text: Path, whole: Path, tmp_path: Path) -> None:
    def file(name: str, content: bytes) -> str:
        (tmp_path / name).write_bytes(content)
        return str(tmp_path / name)

    out = ["--out", str(tmp_path / "new")]
    cut = tmp_path / "cut"
    shutil.copytree(whole, cut)
    state = cut / "checkpoints" / "step-000060" / "training.safetensors"
    state.write_bytes(state.read_bytes()[:-100])
    again = [str(text), "--steps", "70", *SMALL, *OFTEN]
    bad: list[tuple[list[str], str]] = [
        (["train"], "got none, expected exactly one of text files, --pairs FILE and --repeated"),
        (["train", str(text), "--pairs", "x.tsv", *out], "got several"),
        (["train", str(text), "--repeated", *out], "got several"),
        (["train", str(text)], "--out is needed"),
        (["train", str(tmp_path / "none"), *out], "cannot be read: No such file"),
        (["train", file("empty", b""), *out], "is empty: there is nothing to train on"),
        (["train", file("blank", b" \n"), *out], "is blank"),
        (["train", file("latin", b"caf\xe9 au lait"), *out], "isn't UTF-8: byte 0xe9 at position 3"),
        (["train", file("tiny", b"a few words"), *out], "a block of 64 needs 65"),
        (["train", "--pairs", file("p1", b"one\ttwo\nthree\n"), *out], "line 2: no tab"),
        (["train", "--pairs", file("p2", b"one\t\n"), *out], "line 1: the target is missing"),
        (["train", "--pairs", file("p3", b"\n\n"), *out], "has no pairs"),
        (["train", "--pairs", file("p4", b"a\tb\nc\td\n"), *out], "2000 pairs cannot be held out of 2"),
        (["train", str(text), *out, "--set", "layers"], "--set 'layers': expected NAME=VALUE"),
        (["train", str(text), *out, "--set", "layer=2"], "'layer' isn't a setting"),
        (["train", str(text), *out, "--set", "layers=many"], "layers: got 'many', expected a whole number"),
        (["train", str(text), *out, "--set", "heads=5"], "heads"),
        (["train", str(text), *out, "--steps", "0"], "steps: got 0, expected 1 or more"),
        (["train", str(text), *out, "--config", file("c.toml", b"a = [")], "isn't valid TOML or JSON"),
        (["train", str(text), *out, "--set", "batch=100000000"], "of memory"),
        (["train", str(text), *out, "--set", "d_model=131072", "--set", "layers=99"], "of memory"),
        (["train", str(text), *out, *SMALL, "--watch", "the river bank was wide"], "23 tokens, but this block"),
        (["train", str(text), *out, *SMALL, "--prompt", "the river bank wa"], "allows at most 16"),
        (["train", str(text), *out, *SMALL, "--watch", " "], "--watch"),
        (["train", "--pairs", file("p5", b"a\tb\nc\td\ne\tf\n"), *out, "--set", "held_out=1", "--watch", "x"],
         "a translator needs a target"),
        (["train", str(text), "--out", str(whole), *SMALL], "already has a run: use --resume"),
        (["train", *again, "--out", str(whole), "--resume", "--set", "d_model=48"], "its d_model is 24, not 48"),
        (["train", file("other", text.read_bytes() + b" bank"), "--steps", "70", *SMALL, *OFTEN, "--out", str(whole),
          "--resume"], "trained on other texts"),
        (["train", str(text), "--steps", "60", *SMALL, *OFTEN, "--out", str(whole), "--resume"], "all of its 60 steps"),
        (["train", str(text), "--out", str(whole), "--resume"], "all of its 60 steps are done"),
        (["train", str(text), *out, "--steps", "3", "--set", "steps=7"], "--steps 3 and --set steps=7: pass only one"),
        (["train", str(text), *out, "--set", "seed=99999999999999999999"], "expected a number below 2^32"),
        (["train", str(text), "--out", str(tmp_path / "wild"), *SMALL, "--steps", "3", "--set", "rate=1e30"],
         "isn't finite: try a smaller rate"),
        (["train", *again, "--out", str(cut), "--resume"], "truncated or not a safetensors file"),
        (["train", str(text), "--out", str(tmp_path)], "is not empty and isn't a run"),
        (["train", str(text), "--out", str(text), *SMALL], "is a file: pass a folder's name"),
        (["evolve"], "no run given"),
        (["evolve", str(tmp_path / "none")], "no folder"),
        (["evolve", str(tmp_path)], "has no watched traces"),
        (["evolve", str(whole), "--layer", "2"], "layer 2 is out of range: there are layers 0 to 1"),
        (["evolve", str(whole), "--head", "3"], "head 3 is out of range"),
        (["evolve", str(whole), "--part", "cross"], "is not an encoder-decoder"),
        (["evolve", str(whole), "--figure", "a.gif"], ".png"),
        (["generate", "the river"], "--model is needed"),
        (["generate", "the river", "--model", str(whole), "--seed", "1"], "--seed has no effect"),
        (["generate", "the river", "--model", str(whole), "--max-new-tokens", "60"], "can be at most 8"),
        (["generate", "the", "--model", str(whole), "--temperature", "1", "--seed", "9" * 30], "0 to 2^63 - 1"),
        (["translate", "the river"], "--model is needed"),
        (["translate", "the river", "--model", str(whole)], "is not an encoder-decoder"),
    ]  # fmt: skip
    for (arguments, says), (code, told, err) in zip(bad, in_one_process(tmp_path, [a for a, _ in bad]), strict=True):
        assert code == 2, (arguments, told, err)
        assert err.startswith("regard: error: "), arguments
        assert err.count("\n") == 1, (arguments, err)
        assert says in err, (arguments, err)
    assert not (tmp_path / "new").exists(), "nothing half-written"
    assert json.loads((whole / "run.json").read_text())["settings"]["steps"] == 60, "nothing changed"


@pytest.mark.long
def test_what_is_not_given_again_stays_as_it_was(text: Path, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    shutil.copytree(whole, run)
    before = json.loads((run / "run.json").read_text())
    (run / "watch" / "step-abc.safetensors").write_bytes(b"not one of ours")
    done = train(text, "--out", run, "--resume", "--steps", 62)
    assert done.returncode == 0, done.stderr
    after = json.loads((run / "run.json").read_text())
    assert after == before | {"settings": before["settings"] | {"steps": 62}}
    assert (run / "watch" / "step-000062.safetensors").exists()


@pytest.mark.long
def test_generate_and_evolve(whole: Path, regard_command, tmp_path: Path) -> None:
    drawn = ["--max-new-tokens", "9", "--temperature", "0.9", "--seed", "3"]
    done = regard_command("generate", "the ", "--model", str(whole), *drawn, "--save", "a.safetensors")
    assert done.returncode == 0, done.stderr
    assert "wrote 9 tokens after a prompt of 4" in done.stdout
    told = regard_command("generate", "the ", "--model", str(whole), "--full")
    numbers = [line.split()[0] for line in told.stdout.splitlines() if line.strip()]
    assert "16" in numbers, told.stderr  # as many as fit
    assert "17" not in numbers
    assert len(regard.open(tmp_path / "a.safetensors").tokens) == 13
    told = regard_command("evolve", str(whole), "--layer", "1", "--figure", "a.png", "--json", "a.json")
    assert told.returncode == 0, told.stderr
    data = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert data["steps"] == [0, 20, 40, 60]
    assert all(abs(sum(row) - 1) < 1e-5 for table in data["weights"] for row in table)
    assert sorted(os.listdir(tmp_path)) == ["a.json", "a.png", "a.safetensors"]


@pytest.mark.long
def test_tensorboard_gets_what_the_log_has(text: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run = tmp_path / "run"
    done = train(text, "--out", run, "--steps", 5, *SMALL, "--set", "evaluate_every=2", "--tensorboard")
    assert done.returncode == 0, done.stderr
    board = EventAccumulator(str(run / "tensorboard"))
    board.Reload()
    log = [json.loads(line) for line in (run / "log.jsonl").read_text("utf-8").splitlines()]
    told = {event.step: event.value for event in board.Scalars("loss")}
    assert told == pytest.approx({report["step"]: report["loss"] for report in log})
    assert [event.step for event in board.Scalars("held out")] == [2, 4, 5]


def test_a_run_draws_its_log(text: Path, tmp_path: Path) -> None:
    settings = Settings(
        tokenizer="words", layers=1, d_model=8, heads=2, block=5, batch=2, steps=3, evaluate_every=0, sample_every=0
    )
    run = prepare_text_run([text], tmp_path / "run", settings)
    try:
        with pytest.raises(regard.RegardError, match="has no log.jsonl: nothing was trained yet"):
            run.plot()
    finally:
        run_training(run, on_log=lambda _: None)
    lines = read_log(tmp_path / "run")
    drawn = run.plot().axes[0].lines[0].get_xydata()
    assert drawn.tolist() == [[line["step"], pytest.approx(line["loss"])] for line in lines]


def test_a_run_that_was_killed_behind_its_last_checkpoint_is_finished(
    text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The loss is drawn, the last sample written and the sentence traced, in one process; then all is done."""
    settings = Settings(
        tokenizer="words", layers=1, d_model=8, heads=2, block=5, batch=2, steps=3, evaluate_every=0, watch_every=3
    )
    folder, options = tmp_path / "run", RunOptions(watch="the river bank", prompt="the")
    run_training(prepare_text_run([text], folder, settings, options), on_log=lambda _: None)
    assert not (folder / "loss.png").exists()  # nobody followed it, as if it had been killed
    (folder / ".regard-abcd1234.part.png").write_text("half")
    for _ in range(2):
        train_and_follow([text], None, folder, settings, {}, RunOptions(resume=True))
        assert "All steps are done. Finishing the run." in capsys.readouterr().out
        assert (folder / "watch" / "step-000003.safetensors").is_file()
        assert (folder / "samples.txt").read_text().count("step 3: ") == 1
        assert (folder / "loss.png").is_file()
        assert not (folder / ".regard-abcd1234.part.png").exists()
        assert [line["step"] for line in read_log(folder)] == [1, 2, 3]
        with pytest.raises(regard.RegardError, match="all of its 3 steps are done: ask for more"):
            train_and_follow([text], None, folder, settings, {}, RunOptions(resume=True))
        (folder / "loss.png").unlink()
        capsys.readouterr()


@pytest.mark.parametrize("killed", [2, 6])
def test_killed_behind_a_checkpoint_no_sample_is_lost(
    text: Path, tmp_path: Path, killed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(
        tokenizer="words", layers=1, d_model=8, heads=2, block=5, batch=2, steps=6, evaluate_every=0, warmup=1,
        dropout=0.1, save_every=2, sample_every=2, watch_every=1,
    )  # fmt: skip

    def kept(folder: Path) -> tuple[str, dict[tuple[str, str], bytes]]:
        files = (folder / "watch").iterdir()
        read = [(file.name, name, x) for file in files for name, x in safetensors.torch.load_file(file).items()]
        return (folder / "samples.txt").read_text(), {(file, name): x.numpy().tobytes() for file, name, x in read}

    def save_and_die(folder: Path, model: Any, tokenizer: Any, optimiser: Any, state: Any, **options: Any) -> None:
        save_checkpoint(folder, model, tokenizer, optimiser, state, **options)
        if folder.parent.name == "killed" and state.step == killed:
            raise InterruptedError

    monkeypatch.setattr("regard.train.run.save_checkpoint", save_and_die)
    runs = [tmp_path / name / "run" for name in ("whole", "killed")]
    for folder in runs:
        folder.parent.mkdir()
        run = prepare_text_run([text], folder, settings, RunOptions(watch="the river bank", prompt="the"))
        with suppress(InterruptedError):
            follow_run_in_terminal(run, board=None, processes=None)
    monkeypatch.undo()
    train_and_follow([text], None, runs[1], settings, {}, RunOptions(resume=True))
    assert kept(runs[1]) == kept(runs[0])
    assert kept(runs[0])[0].count("step ") == 3
    assert {file for file, _ in kept(runs[0])[1]} == {f"step-{step:06d}.safetensors" for step in range(7)}


def test_a_run_that_ended_in_nan_goes_on_with_a_smaller_rate(text: Path, tmp_path: Path) -> None:
    settings = Settings(tokenizer="words", layers=1, d_model=8, heads=2, block=5, batch=2, steps=2, warmup=0, clip=0.0)

    def trained(**changes: float) -> tuple[str, ...]:
        run = prepare_text_run([text], tmp_path, replace(settings, **changes), RunOptions(resume=True))
        assert run_training(run, on_log=lambda _: None).step == run.settings.steps
        return run.notes

    trained()
    with pytest.raises(regard.RegardError, match="isn't finite: try a smaller rate .--resume"):
        trained(rate=1e30, steps=6)
    after, rate = trained(rate=1e-4, steps=6)[-2:]
    assert "after step 2" in after
    assert all(each in rate for each in ("0.0001", "1e+30"))
    assert [line["step"] for line in read_log(tmp_path)] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("source", [["text.txt"], ["--pairs", "pairs.tsv"]])
def test_the_commands_that_are_recommended_run(source: list[str], text: Path, tmp_path: Path, regard_command) -> None:
    shutil.copyfile(text, tmp_path / "text.txt")
    (tmp_path / "pairs.tsv").write_text("".join(f"the bank {n}\tla rive {n}\n" for n in range(30)))
    sizes = [*SMALL, "--set", "held_out=0.2", "--set", "vocabulary=280"]
    done = regard_command("train", *source, "--out", "my run", "--steps", "1", *sizes)
    assert done.returncode == 0, done.stderr
    recommended = [shlex.split(line) for line in done.stdout.splitlines() if line.startswith("  regard ")]
    assert [call[1] for call in recommended] == ["translate" if "--pairs" in source else "generate", "see"]
    for call in recommended:
        done = regard_command(*call[1:])
        assert done.returncode == 0, (call, done.stderr)


@pytest.mark.parametrize("kind", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_what_ends_jobs_asks_to_stop(kind: str) -> None:
    number = getattr(signal, kind)
    before = signal.signal(number, signal.SIG_DFL)  # whatever started the tests may have had it ignored
    try:
        with stop_training_on_interrupt() as stop:
            assert not stop()
            signal.raise_signal(number)
            assert stop()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
        assert signal.getsignal(number) == signal.SIG_DFL
    finally:
        signal.signal(number, before)


def test_what_nohup_has_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stop_training_on_interrupt() as stop:
            signal.raise_signal(signal.SIGHUP)
            assert not stop()
    finally:
        signal.signal(signal.SIGHUP, before)
