"""The live page of docs/page.md is what its own command writes."""

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support import ROOT
from tests.support.pages import hook

pytest.importorskip("mkdocs", reason="needs the extra docs (make docs runs this test)")
pytestmark = pytest.mark.docs
PAGE = (ROOT / "docs" / "page.md").read_text("utf-8")


live_page = hook("live_page")


def test_every_frame_has_a_command() -> None:
    frames = live_page.FRAMES.findall(PAGE)
    assert frames == ["bank.html"]
    unframed = ["patches.html", "parts.html", "score.html", "heads.html"]  # written by commands, shown nowhere
    assert list(live_page.commands(PAGE)) == [*frames, *unframed]
    assert live_page.commands(PAGE)["bank.html"][:2] == ["see", "Write a poem about a man fishing on a river bank."]


def test_a_frame_without_a_command_and_a_command_that_fails_stop_the_build(tmp_path: Path) -> None:
    from mkdocs.exceptions import PluginError

    frame = '<iframe src="live/a.html"></iframe>\n'
    with pytest.raises(PluginError, match=r"no command writes a\.html"):
        live_page.make(frame, tmp_path)
    with pytest.raises(PluginError, match="nobody"):
        live_page.make('```sh\nregard see "a bank" --word nobody --html a.html\n```\n' + frame, tmp_path)


def test_without_the_built_page_a_sentence_stands_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    own, other = (SimpleNamespace(file=SimpleNamespace(src_uri=name)) for name in ("page.md", "index.md"))
    without = live_page.on_page_markdown(PAGE, page=own)
    assert "<iframe" not in without
    assert live_page.LEFT_OUT in without
    assert live_page.on_page_markdown(PAGE, page=other) == PAGE
    built = tmp_path / live_page.BUILT
    built.parent.mkdir(parents=True)
    built.write_text("")
    assert live_page.on_page_markdown(PAGE, page=own) == PAGE


@pytest.mark.skipif("REGARD_SITE" not in os.environ, reason="no built site (make docs builds it and runs this)")
def test_the_site_has_the_page_whole() -> None:
    if not (ROOT / live_page.BUILT).exists():
        pytest.skip("the page is not built: make page")
    site = Path(os.environ["REGARD_SITE"])
    assert 'src="live/bank.html"' in (site / "page.html").read_text("utf-8")
    html = (site / "live" / "bank.html").read_text("utf-8")
    assert "default-src &#x27;none&#x27;" in html
    assert re.search(r'id="numbers-\d+"', html)


def test_a_live_page_is_written(tmp_path: Path) -> None:
    if not (ROOT / live_page.BUILT).exists():
        pytest.skip("the page is not built: make page")
    made = live_page.make(PAGE, tmp_path / "live")
    assert made == {"bank.html": tmp_path / "live" / "bank.html"}
    assert "withdrawing" in made["bank.html"].read_text("utf-8")
    shutil.rmtree(tmp_path / "live")


GALLERY = (ROOT / "docs" / "gallery.md").read_text("utf-8")


def test_every_screenshot_has_a_command_and_every_command_one() -> None:
    known, shots = live_page.commands(GALLERY), live_page.SHOTS.findall(GALLERY)
    assert {stem if stem == live_page.SERVER else f"{stem}.html" for _, stem, _ in shots} == set(known)
    assert len({name for name, *_ in shots}) == len(shots) >= 8


def test_screenshots_are_taken_of_the_views_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    monkeypatch.setattr(live_page, "run", lambda call, folder: (folder / call[call.index("--html") + 1]).touch())
    monkeypatch.setattr(live_page, "find", lambda name: None)  # no other models
    page = re.sub(r"regard serve.*|!.*serve.png.", "", GALLERY)
    made = live_page.photograph(
        page, tmp_path, None, lambda _, address, file, **how: told.append((address, how["view"]))
    )
    assert ("bank.html", "Matrix") in [(address.rpartition("/")[2], view) for address, view in told]
    assert not {"written.png", "translated.png"} & set(made)
    live_page.taken.update(made)
    shown = live_page.on_page_markdown(page, page=SimpleNamespace(file=SimpleNamespace(src_uri="gallery.md")))
    assert shown.count(live_page.NO_SHOT) == 2
    live_page.taken.clear()
