"""The pictures of docs/pictures.md are those that its own commands draw."""

from pathlib import Path

import pytest

from tests.support import ROOT
from tests.support.pages import hook

pytest.importorskip("mkdocs", reason="needs the extra docs (make docs runs this test)")
pytestmark = pytest.mark.docs
PAGE = (ROOT / "docs" / "pictures.md").read_text("utf-8")


pictures = hook("pictures")


def test_every_picture_shown_has_a_command_and_every_command_a_picture() -> None:
    drawn = [call[call.index("--figure") + 1] for call in pictures.commands(PAGE) if "--figure" in call]
    assert drawn == pictures.SHOWN.findall(PAGE)
    assert len(drawn) == len(set(drawn)) == 7


@pytest.mark.parametrize("folder", ["", "smollm2"])
def test_so_have_those_of_the_questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str) -> None:
    """Without SmolLM2 a sentence stands where a picture of it would."""
    (tmp_path / "smollm2").mkdir()
    (tmp_path / "smollm2" / "model.gguf").touch()
    monkeypatch.setenv("REGARD_SMOLLM2", str(tmp_path / folder) if folder else "")
    left_out = 0
    for file in (ROOT / "docs" / "questions").glob("*.md"):
        page = pictures.shown(file.read_text("utf-8"))
        calls = pictures.commands(page)
        drawn = [call[call.index("--figure") + 1] for call in calls if "--figure" in call]
        assert drawn == pictures.SHOWN.findall(page), file.name
        assert {call[call.index("--model") + 1] for call in calls if "--model" in call} <= {str(tmp_path / folder)}
        left_out += page.count(pictures.LEFT_OUT)
    assert left_out == (0 if folder else 2)


def test_a_command_that_fails_and_a_picture_that_none_draws_stop_the_build(tmp_path: Path) -> None:
    from mkdocs.exceptions import PluginError

    page = "```sh\nregard see 'a bank' --word bank --figure a.png\n```\n![A](drawn/a.png)\n"
    assert pictures.draw(page, tmp_path / "out", ROOT / "docs") == {"a.png": tmp_path / "out" / "a.png"}
    with pytest.raises(PluginError, match=r"no command draws b\.png"):
        pictures.draw(page + "![B](drawn/b.png)\n", tmp_path / "out", ROOT / "docs")
    with pytest.raises(PluginError, match="there is no such folder"):
        pictures.draw(page.replace("--word bank", "--model ./none"), tmp_path / "out", ROOT / "docs")
