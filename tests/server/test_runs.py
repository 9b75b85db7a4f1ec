"""Training runs through the server's routes: what a browser gets is what the run's own files say."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from regard.errors import RegardError
from regard.files import lock_folder
from regard.server import runs
from regard.server.app import make_app
from regard.server.runs import run_time_in_words
from regard.train.evolve.answer import Evolution, evolution, open_watched
from regard.train.follow import save_watched_trace, write_sample
from regard.train.progress import FollowedRun
from regard.train.run import RunOptions, prepare_pair_run, prepare_repeated_run, run_training
from regard.train.run_files import LOG, read_log
from regard.train.settings import Settings

pytestmark = pytest.mark.usefixtures("stand_in")
STEPS = 24


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small run to its end, with samples and a watched line."""
    settings = Settings.for_repeated(
        layers=2, d_model=16, heads=2, d_hidden=16, steps=STEPS, batch=4, evaluate_every=10, save_every=10,
        sample_every=8,
    )  # fmt: skip
    run = prepare_repeated_run(tmp_path_factory.mktemp("runs") / "letters", settings)

    def keep(step: int) -> None:
        if step % 4 == 0:
            save_watched_trace(run, run.watched or "", step)
        if step % 8 == 0:
            write_sample(run, "ab", step)

    run_training(run, on_log=lambda _: None, on_step_end=keep)
    return run.folder


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """The same, to be changed."""
    return shutil.copytree(trained, tmp_path / "letters")


@pytest.fixture
def client(run: Path) -> Iterator[TestClient]:
    with TestClient(make_app([], runs=[FollowedRun(run)]), raise_server_exceptions=False) as found:
        yield found


def line_of(state: Any, name: str) -> Any:
    return next(line for line in state["curve"]["series"] if line["name"] == name)


def test_two_runs_of_one_name_are_told_apart(run: Path, tmp_path: Path) -> None:
    other = shutil.copytree(run, tmp_path / "other" / "letters")
    with TestClient(make_app([], runs=[FollowedRun(run), FollowedRun(other)])) as client:
        names = [each["name"] for each in client.get("/api/state").json()["runs"]]
    assert names == ["letters", "other/letters"]


def test_a_run_in_words_numbers_and_a_curve(client: TestClient, run: Path) -> None:
    assert client.get("/api/state").json()["runs"] == [{"name": "letters"}]
    state, log = client.get("/api/runs/0").json(), read_log(run)
    assert state["says"] == "It ended: all 24 steps are done."
    assert (state["step"], state["steps"], state["loss"]) == (STEPS, STEPS, log[-1]["loss"])
    assert line_of(state, "training")["x"] == list(range(1, STEPS + 1))
    assert line_of(state, "training")["y"] == [each["loss"] for each in log]
    assert line_of(state, "held out")["x"] == [10, 20, 24]
    assert line_of(state, "held out")["y"] == [each["validation"] for each in log if each["validation"] is not None]
    assert state["validation"] == [STEPS, log[-1]["validation"]]
    assert "From step 1 to 24" in state["findings"][0]
    text = (run / "samples.txt").read_text(encoding="utf-8")
    assert [sample["step"] for sample in state["samples"]] == [24, 16, 8]
    assert text == "".join(f"step {each['step']}: {each['text']}\n" for each in reversed(state["samples"]))
    assert state["watched"] | {"mark": ""} == {"mark": "", "count": 6, "step": 24, "layers": 2, "heads": 2, "parts": []}


def test_it_goes_on_and_the_next_look_has_it(client: TestClient, run: Path) -> None:
    before = client.get("/api/runs/0").json()
    lines = (run / LOG).read_text().splitlines(keepends=True)
    lock = lock_folder(run, "taken", "unwritable")
    (run / LOG).write_text("".join(lines[:20]) + lines[20][:30])  # in the middle of a line
    state = client.get("/api/runs/0").json()
    assert (state["step"], state["going"]) == (20, "trains")
    assert state["says"].startswith("It trains now: step 20 of 24, about 1 s left")
    with (run / LOG).open("a") as file:
        file.write(lines[20][30:])
    assert client.get("/api/runs/0").json()["loss"] == before["curve"]["series"][0]["y"][20]
    lock.release()
    broken = client.get("/api/runs/0").json()
    assert broken["says"] == (
        "It broke off after step 21 of 24 without saving: it was killed, or failed. The newest checkpoint is of "
        "step 24: regard train --resume goes on from there."
    )


def test_the_watched_sentence_is_the_page_of_evolve(client: TestClient, run: Path) -> None:
    watched = open_watched(run)
    for asked, layer, head in (("", 0, None), ("?layer=1&head=1", 1, 1), ("?layer=1", 1, None)):
        answer = client.get(f"/api/runs/0/watched{asked}").json()
        found = evolution(watched, layer, head)
        assert (answer["layer"], answer["head"], answer["step"]) == (layer, head, STEPS)
        panels = {panel["name"]: panel for panel in answer["page"]["panels"]}
        grids = ["Step 4", "Step 24", "Difference"]
        assert list(panels) == [*grids, "Entropy", "Change", "Step by step", "Induction", "Embeddings", "Loss"]
        assert panels["Step 24"]["values"] == [[each or None for each in row] for row in found.weights[-1]]  # masked
        assert [row[0] for row in panels["Step by step"]["rows"]] == found.steps
        assert client.get(f"/api/pages/{answer['id']}").json() == answer["page"]
        numbers = answer["page"]["calls"][0]["query"]["values"]["at"]
        assert client.get(f"/api/pages/{answer['id']}/numbers/{numbers}").status_code == 200
        assert answer["page"]["opening"]["view"] == "panel 1"  # the newest
        again = client.get(f"/api/runs/0/watched{asked}").json()
        assert again == answer


def test_of_many_traces_some_are_read_and_that_is_said(client: TestClient, run: Path, monkeypatch: Any) -> None:
    mark = client.get("/api/runs/0").json()["watched"]["mark"]
    monkeypatch.setattr(runs, "WATCHED", 4)
    shutil.copy(run / "watch" / "step-000004.safetensors", run / "watch" / "step-000025.safetensors")
    assert client.get("/api/runs/0").json()["watched"]["mark"] != mark
    page = client.get("/api/runs/0/watched").json()["page"]
    steps = next(panel for panel in page["panels"] if panel["name"] == "Step by step")
    assert [row[0] for row in steps["rows"]] == [4, 12, 20, 25]
    assert any("Of 7 watched traces 4 are here" in line for line in page["status"])


def test_an_induction_head_is_what_it_opens_at(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Evolution, "formed_head", lambda _: (1, 0))
    answer = client.get("/api/runs/0/watched").json()
    assert (answer["layer"], answer["head"], answer["formed"]) == (1, 0, [1, 0])
    answer = client.get("/api/runs/0/watched?layer=0").json()  # what was chosen stays
    assert (answer["layer"], answer["head"], answer["formed"]) == (0, None, [1, 0])


def test_a_translator_has_three_parts(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    nouns = [f"{a}{b}" for a in "bdfgl" for b in ("ank", "oat", "ill", "ist")]
    file.write_text("".join(f"the {each}\tla {each[::-1]}\n" for each in nouns), encoding="utf-8")
    settings = Settings.for_pairs(
        layers=1, d_model=16, heads=2, d_hidden=16, steps=4, batch=64, held_out=2.0, vocabulary=300
    )
    run = prepare_pair_run(file, tmp_path / "pairs", settings, RunOptions(watch="the bank\tla knab"))

    def keep(step: int) -> None:
        save_watched_trace(run, run.watched or "", step)

    run_training(run, on_log=lambda _: None, on_step_end=keep)
    with TestClient(make_app([], runs=[FollowedRun(run.folder)]), raise_server_exceptions=False) as client:
        state = client.get("/api/runs/0").json()
        assert state["watched"]["parts"] == ["cross", "encoder", "decoder"]
        assert "labels smoothed by 0.1" in state["curve"]["note"]
        watched = open_watched(run.folder)
        for part in ("cross", "encoder", "decoder"):
            page = client.get(f"/api/runs/0/watched?layer=0&head=1&part={part}").json()["page"]
            found = evolution(watched, 0, 1, part=part)
            assert page["title"] == found.title()
            masked = [[each or None for each in row] for row in found.weights[-1]]
            assert page["panels"][1]["values"] == masked


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("1", 404, "follows 1, numbered from 0"),
        ("9/watched", 404, "follows 1"),
        ("-1", 422, "number"),
        ("..%2F..%2Fetc", 404, ""),
        ("0/watched?layer=2", 422, "layer 2"),
        ("0/watched?layer=0&head=2", 422, "head 2"),
        ("0/watched?part=cross", 422, "not an encoder-decoder"),
        ("0/watched?part=sideways", 422, "part"),
        ("0/watched?layer=a", 422, "layer"),
        ("0/watched?layer=99999999999999999999", 422, "layer"),
    ],
)
def test_what_is_not_there_is_refused(client: TestClient, path: str, status: int, says: str) -> None:
    answer = client.get(f"/api/runs/{path}")
    assert (answer.status_code, says in answer.json()["error"]) == (status, True), answer.json()


def test_a_server_without_runs_says_so() -> None:
    with TestClient(make_app([])) as client:
        answer = client.get("/api/runs/0")
        assert (answer.status_code, "follows 0" in answer.json()["error"]) == (404, True)


def test_a_folder_that_is_damaged_gone_or_another_gets_one_line(client: TestClient, run: Path) -> None:
    def says(status: int, text: str, path: str = "0") -> None:
        answer = client.get(f"/api/runs/{path}")
        assert (answer.status_code, text in answer.json()["error"]) == (status, True), answer.text
        assert "\n" not in answer.json()["error"]

    log, info = (run / LOG).read_bytes(), (run / "run.json").read_bytes()
    (run / LOG).write_bytes(log[:200] + b"\xff\n" + log[200:])
    says(422, "is damaged: line")
    (run / LOG).write_bytes(log)
    (run / "run.json").write_bytes(info[:-40])
    says(422, "run.json")
    (run / "run.json").write_bytes(info)
    last = run / "watch" / "step-000024.safetensors"
    whole = last.read_bytes()
    last.write_bytes(whole[: len(whole) // 2])
    says(422, "step-000024", "0/watched")
    assert client.get("/api/runs/0").status_code == 200
    last.write_bytes(whole)
    assert client.get("/api/runs/0/watched").status_code == 200
    shutil.rmtree(run / "watch")
    says(422, "no watched traces", "0/watched")
    assert client.get("/api/runs/0").json()["watched"] is None
    shutil.rmtree(run)
    says(422, "is gone")
    says(422, "is gone", "0/watched")
    run.mkdir()
    says(422, "is no training run")


def test_numbers_that_are_none_are_sent_as_none(client: TestClient, run: Path) -> None:
    lines = [json.loads(each) for each in (run / LOG).read_text().splitlines()]
    lines[-1] |= {"loss": float("nan"), "validation": float("inf")}
    (run / LOG).write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    state = client.get("/api/runs/0").json()
    assert (state["loss"], state["validation"]) == (None, [24, None])
    assert line_of(state, "training")["y"][-1] is None


def test_what_is_no_run_is_not_served(tmp_path: Path) -> None:
    for folder, says in ((tmp_path / "nowhere", "no folder"), (tmp_path, "no training run")):
        with pytest.raises(RegardError, match=says):
            FollowedRun(folder)


def test_times_are_said_in_two_units() -> None:
    assert [run_time_in_words(each) for each in (0.2, 59.4, 59.6, 125.0, 3599.6, 10_925.0)] == [
        "1 s", "59 s", "1 min 0 s", "2 min 5 s", "1 h 0 min", "3 h 2 min",
    ]  # fmt: skip
