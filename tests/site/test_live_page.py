"""The live page of docs/page.md is what its own command writes."""

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace

import matplotlib.image
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
    picture = live_page.photograph(made["bank.html"])
    assert picture is None or matplotlib.image.imread(picture).std() > 0.02  # no blank sheet
    shutil.rmtree(tmp_path / "live")


def test_without_a_picture_of_the_page_the_home_page_shows_the_one_that_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert f"]({live_page.HOME})" in home
    assert (ROOT / "docs" / live_page.KEPT).is_file()
    monkeypatch.chdir(tmp_path)
    own = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"))
    assert live_page.on_page_markdown(home, page=own) == home.replace(live_page.HOME, live_page.KEPT)
    (tmp_path / live_page.FOLDER).mkdir(parents=True)
    (tmp_path / live_page.FOLDER / "home.png").touch()
    assert live_page.on_page_markdown(home, page=own) == home
