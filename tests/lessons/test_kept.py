"""Pictures of lessons: written to the folder that is named, and shown by a notebook with their content."""

import base64
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from drawings.kept import keep


def drawn() -> Figure:
    figure = Figure(figsize=(2, 1))
    figure.add_subplot().plot([1, 3, 2])
    return figure


@pytest.mark.parametrize(
    ("name", "kind", "first"), [("a.svg", "image/svg+xml", b"<?xml"), ("b.png", "image/png", b"\x89PNG")]
)
def test_is_written_and_shown(
    name: str, kind: str, first: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGARD_OUT", str(tmp_path / "new" / "folder"))
    picture = keep(drawn(), name, 'a line that is <bent> "twice"')
    content = (tmp_path / "new" / "folder" / name).read_bytes()
    assert picture.file == tmp_path / "new" / "folder" / name
    assert content.startswith(first)
    shown = picture._repr_html_()
    assert f"data:{kind};base64,{base64.b64encode(content).decode()}" in shown
    assert "a line that is &lt;bent&gt; &quot;twice&quot;" in shown


def test_an_svg_is_the_same_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGARD_OUT", str(tmp_path))
    first, second = (keep(drawn(), name, "a line").file.read_bytes() for name in ("a.svg", "b.svg"))
    assert first == second
    assert b"<text" not in first  # letters are outlines


def test_where_no_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGARD_OUT", raising=False)
    monkeypatch.chdir(tmp_path)
    assert keep(drawn(), "a.png", "a line").file == Path("out/lessons/a.png")
    assert (tmp_path / "out/lessons/a.png").is_file()
