"""A run that trains in another process, followed in a real browser: it advances by itself, and its end is said."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from regard.train.evolve.answer import evolution, open_watched
from regard.train.run_files import read_log
from tests.support import RIVER
from tests.support.served import served
from tests.web.conftest import AXE, Opened
from tests.web.tables import rows_of

pytestmark = pytest.mark.browser
EVERY = ("--set", "sample_every=50", "--set", "evaluate_every=20", "--set", "save_every=100")
SMALL = ("--repeated", "--prompt", "ab", *EVERY)


def train(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """Begin a run as a person does, and wait until its folder is one."""
    process = subprocess.Popen(
        [sys.executable, "-m", "regard", "train", "--out", str(folder), *SMALL, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    until = time.monotonic() + 120
    while not (folder / "run.json").exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.1)
    return process


@pytest.fixture
def training(tmp_path: Path) -> Iterator[tuple[Path, subprocess.Popen[bytes]]]:
    """A run that trains in another process, for longer than a test takes."""
    folder = tmp_path / "letters"
    process = train(folder, "--steps", "100000", "--set", "watch_every=40")
    yield folder, process
    if process.poll() is None:
        process.kill()
    process.wait()


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run to its end, in which induction forms."""
    folder = tmp_path_factory.mktemp("runs") / "induction"
    assert train(folder, "--steps", "600", "--set", "watch_every=100").wait(300) == 0
    return folder


def step_of(page: Opened) -> int:
    return int(page.tab.locator("[data-step]").inner_text())


def wait_for_step(page: Opened, more: int) -> None:
    """Wait until the page has gone on to a step, with nothing done by hand."""
    until = time.monotonic() + 120
    while step_of(page) < more:
        assert time.monotonic() < until
        page.tab.wait_for_timeout(200)


@contextmanager
def followed(visit: Any, *arguments: str, width: int = 1000) -> Iterator[tuple[Opened, subprocess.Popen[str]]]:
    """A page of a server of its own, which the page has left when the server ends."""
    with served(*arguments) as (process, port, token):
        page = visit(f"http://127.0.0.1:{port}/?token={token}", width)
        try:
            yield page, process
        finally:
            page.tab.goto("about:blank")


def open_numbers(page: Opened) -> None:
    """Open the table of the loss."""
    page.tab.locator("section[aria-label='Training run'] summary:text-is('The numbers as a table')").click()


def newest(page: Opened) -> int:
    """The step of the newest watched trace that the page shows."""
    names = [each.get_attribute("data-grid") for each in page.tab.locator("[data-grid]").all()]
    return max(int(name[5:]) for name in names if name[5:].isdigit())


def test_it_advances_by_itself_and_keeps_where_one_looks(visit: Any, training: Any) -> None:
    folder, process = training
    with followed(visit, "--run", str(folder)) as (page, _):
        page.tab.wait_for_selector("[data-going=trains]", timeout=60_000)
        wait_for_step(page, 90)
        page.tab.wait_for_selector("[role=tab]:has-text('Heat maps')")
        page.tab.select_option("[data-watched=layer]", "1")
        page.tab.select_option("[data-watched=head]", "2")
        page.tab.wait_for_selector(".topbar [title*='layer 1, head 2']")
        open_numbers(page)
        box = page.tab.locator("[aria-label^='Loss, step by step']").first
        box.focus()
        for key in ("Home", "PageDown", "ArrowRight"):
            page.tab.keyboard.press(key)
        said = page.tab.locator("[data-says]").first.inner_text()
        place = int(re.search(r"(\d+): training", said)[1])  # type: ignore[index]
        scrolled = page.tab.evaluate("window.scrollY")
        heat = page.tab.locator("[role=tabpanel] [role=application] canvas").element_handle()
        before, watched = step_of(page), newest(page)
        wait_for_step(page, before + 100)
        page.tab.wait_for_timeout(3_000)
        assert newest(page) > watched
        assert page.tab.locator("[aria-pressed=true]").get_attribute("data-grid") == f"Step {newest(page)}"
        assert heat.evaluate("canvas => canvas.isConnected")  # it was drawn anew, not made anew
        assert page.tab.evaluate("document.activeElement.getAttribute('aria-label')").startswith("Loss, step by step")
        assert page.tab.evaluate("window.scrollY") == scrolled
        log = read_log(folder)
        now = page.tab.locator("[data-says]").first.inner_text()
        own = re.match(rf"step {place}: training (\d+\.\d+)", now)
        if own:  # while each point is one update
            assert float(own[1]) == pytest.approx(log[place - 1]["loss"], abs=0.0051)
        assert len(rows_of(page.tab, "Loss, step by step")) > 100
        page.tab.click("button:text-is('Pause')")
        page.tab.wait_for_timeout(500)
        before = step_of(page)
        page.tab.wait_for_timeout(5_000)
        assert step_of(page) == before
        page.tab.click("button:text-is('Go on refreshing')")
        wait_for_step(page, before + 1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        page.tab.wait_for_selector("[data-going='broken off'], [data-going=stopped]", timeout=30_000)
        last = int(read_log(folder)[-1]["step"] or 0)
        assert f"after step {last:,} of 100,000" in page.tab.locator("[data-going]").inner_text()
        assert f"after step {last:,} of 100,000" in page.tab.locator("[role=status]").inner_text()
        shutil.rmtree(folder)
        page.tab.wait_for_selector("[role=alert]:has-text('is gone')", timeout=30_000)
        assert step_of(page) == last  # what was known stays


def test_the_page_of_a_run_that_ended_holds_its_numbers(visit: Any, ended: Path) -> None:
    with followed(visit, "--run", str(ended)) as (page, _):
        page.tab.wait_for_selector("[data-going=ended]", timeout=60_000)
        log = read_log(ended)
        assert page.number("[data-loss]") == pytest.approx(log[-1]["loss"], abs=0.0051)
        open_numbers(page)
        rows = rows_of(page.tab, "Loss, step by step")
        held = [(int(row[2]), float(row[3])) for row in rows if row[0] == "held out"]
        known = [each for each in log if each["validation"]]
        assert held == [(each["step"], pytest.approx(each["validation"], abs=0.0051)) for each in known]
        means = [row for row in rows if row[0] == "training"]
        assert len(means) == 300
        for row in (means[0], means[123], means[-1]):
            own = [float(each["loss"] or 0) for each in log[int(row[1]) - 1 : int(row[2])]]
            assert float(row[3]) == pytest.approx(sum(own) / len(own), abs=0.0051)
            assert [float(row[4]), float(row[5])] == pytest.approx([min(own), max(own)], abs=0.0051)
        found = evolution(open_watched(ended), 1, 3)
        assert found.formed(1, 3) is not None
        page.tab.wait_for_selector(".topbar [title*='layer 1, head 3']")  # where induction formed
        assert "is an induction head from step" in page.tab.locator(".findings").inner_text()
        page.open_grid("Difference")
        page.tab.wait_for_timeout(200)
        link = page.tab.url
        page.tab.reload()
        page.tab.wait_for_selector("[data-grid=Difference][aria-pressed=true]")
        assert page.tab.url == link
        page.tab.select_option("[data-watched=head]", "0")
        page.tab.click("button:has-text('look at L1H3')")
        page.tab.wait_for_selector(".topbar [title*='layer 1, head 3']")
        with page.tab.expect_download() as download:
            page.tab.click("text=Save this page as one file")
        text = Path(download.value.path()).read_text(encoding="utf-8")
        assert "Loss, step by step" in text


@pytest.mark.parametrize("width", [390, 1000])
def test_everyone_can_follow(visit: Any, ended: Path, width: int) -> None:
    with followed(visit, "--run", str(ended), width=width) as (page, _):
        page.tab.wait_for_selector("[role=tabpanel]", timeout=60_000)
        page.tab.evaluate(AXE.read_text())
        for view in (None, "Loss", "Numbers"):
            if view:
                page.open_view(view)
            page.suits_everyone(width)


def test_it_stands_beside_texts_and_a_run_that_watches_nothing(visit: Any, ended: Path, tmp_path: Path) -> None:
    other = shutil.copytree(ended, tmp_path / "bare")
    shutil.rmtree(other / "watch")
    with followed(visit, "--run", str(ended), "--run", str(other), RIVER) as (page, _):
        page.tab.wait_for_selector(f".topbar [title*='{RIVER[:20]}']", timeout=60_000)
        page.tab.click("button:text-is('bare')")
        page.tab.wait_for_selector("text=Nothing is watched in this run")
        assert page.tab.locator("[role=tab]").count() == 0
        page.tab.reload()
        page.tab.wait_for_selector("text=Nothing is watched in this run", timeout=60_000)
        page.tab.click("button:text-is('induction')")
        page.tab.wait_for_selector(".topbar [title*='layer 1, head 3']")
        page.tab.click("button:has-text('Trace')")
        page.tab.wait_for_selector(f".topbar [title*='{RIVER[:20]}']")
        assert page.tab.locator("[data-going]").count() == 0


def test_a_view_that_somebody_is_in_waits_with_a_newer_step(visit: Any, ended: Path, tmp_path: Path) -> None:
    run = shutil.copytree(ended, tmp_path / "more")
    with followed(visit, "--run", str(run)) as (page, _):
        page.tab.wait_for_selector("[role=tabpanel]", timeout=60_000)
        page.open_view("Numbers")
        page.tab.click(".tokens [data-unit='5']")
        page.tab.wait_for_timeout(300)
        chosen = page.tab.url
        shutil.copy(run / "watch" / "step-000600.safetensors", run / "watch" / "step-000700.safetensors")
        page.tab.wait_for_selector("text=Step 700 is there.", timeout=30_000)
        assert page.tab.locator("[data-choose=text] option:has-text('step 700')").count() == 0
        assert page.tab.url == chosen
        page.tab.click("button:text-is('show it')")
        page.tab.wait_for_selector("[data-choose=text] option:has-text('step 700')", state="attached")
        assert page.tab.locator("text=Step 700 is there.").count() == 0
        assert page.tab.url == chosen  # the same view, layer, head and token
        shutil.copy(run / "watch" / "step-000600.safetensors", run / "watch" / "step-000800.safetensors")
        page.tab.evaluate("document.activeElement.blur()")
        page.tab.mouse.move(5, 5)
        page.tab.wait_for_selector("[data-choose=text] option:has-text('step 800')", state="attached", timeout=30_000)
        assert page.tab.url == chosen


def test_a_server_that_was_stopped_is_said(visit: Any, ended: Path) -> None:
    with followed(visit, "--run", str(ended)) as (page, process):
        page.tab.wait_for_selector("[data-going=ended]", timeout=60_000)
        process.kill()
        process.wait()
        page.tab.wait_for_selector("text=it was stopped", timeout=30_000)
        assert page.tab.locator("[data-going=ended]").count() == 1
    page.errors.clear()  # Chromium tells of connections that are refused
