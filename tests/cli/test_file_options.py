"""The options of files, declared once for all verbs that write them."""

import inspect
from pathlib import Path
from typing import Any

import pytest
import typer

from regard.cli.file_options import writes
from regard.cli.main import app
from regard.cli.outputs import NOTHING, Outputs
from regard.cli.page_file import PageFile

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
OPTIONS = ["--html", "--html-with"]


@pytest.mark.parametrize("verb", ["see", "why", "map", "steps", "generate", "translate", "evolve"])
def test_verbs_that_write_a_page_have_its_options_side_by_side(verb: str) -> None:
    names = [each.opts[0] for each in COMMANDS[verb].params]
    at = names.index("--html")
    assert names[at : at + 2] == OPTIONS


def test_a_verb_takes_them_as_one() -> None:
    taken = []

    @writes("figure", "html of traces")
    def verb(text: str, outputs: Outputs = NOTHING, last: bool = False) -> None:
        taken.append((text, outputs, last))

    file = Path("a.html")
    verb("a", html=file, html_with=["layers=1,2", "steps"], last=True)
    verb(text="b", outputs=Outputs(figure=Path("b.png")))  # as another verb calls it
    offered = Outputs(html=PageFile(file, "int16", (1, 2), True), offered=("figure", "html"))
    assert taken == [("a", offered, True), ("b", Outputs(figure=Path("b.png")), False)]
    own = inspect.signature(verb).parameters
    assert list(own) == ["text", "figure", "html", "html_with", "last"]
