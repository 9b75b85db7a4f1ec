"""A page's options, declared once for all verbs that write one."""

from pathlib import Path
from typing import Any

import pytest
import typer

from regard.cli.main import app
from regard.cli.options import Numbers
from regard.cli.page_file import NO_PAGE, PageFile
from regard.cli.page_options import page_options

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
OPTIONS = ["--html", "--html-numbers", "--html-layers", "--html-steps"]


@pytest.mark.parametrize("verb", ["see", "why", "map", "steps", "generate", "translate", "evolve"])
def test_verbs_that_write_a_page_have_its_options_side_by_side(verb: str) -> None:
    names = [each.opts[0] for each in COMMANDS[verb].params]
    at = names.index("--html")
    assert names[at : at + 4] == OPTIONS


def test_a_verb_takes_them_as_one_page_file() -> None:
    taken = []

    @page_options
    def verb(text: str, html: PageFile = NO_PAGE, last: bool = False) -> None:
        taken.append((text, html, last))

    file = Path("a.html")
    verb("a", html_file=file, html_layers=Numbers((1, 2)), html_steps=True, last=True)
    verb(text="b")
    assert taken == [("a", PageFile(file, None, (1, 2), True), True), ("b", NO_PAGE, False)]
