"""A sentence that nothing parses fails, one that is not true fails; and no sentence is held by a renderer."""

import ast
from pathlib import Path

import pytest

from tests.said.templates import Template, hold, largest, shows


def most(groups, numbers) -> None:
    largest(groups["name"], numbers)
    shows(groups["weight"], numbers[groups["name"]])


RENDERERS = (
    "regard.web", "regard.display.terminal", "regard.display.figure", "regard.display.page",
    "regard.display.picture", "regard.display.elements", "regard.server", "regard.cli",
)  # fmt: skip
MOST = Template("most", r"Most goes to “(?P<name>.+)” \((?P<weight>[\d.]+)\)\.", most)


def test_a_true_sentence_holds_and_is_counted() -> None:
    assert hold(["Most goes to “a” (0.75)."], {"a": 0.754, "b": 0.2}, [MOST]) == {"most": 1}


@pytest.mark.parametrize(
    ("sentence", "numbers", "templates", "why"),
    [
        ("Most goes to “b” (0.20).", {"a": 0.75, "b": 0.2}, [MOST], "not true of its numbers"),
        ("Most goes to “a” (0.76).", {"a": 0.75, "b": 0.2}, [MOST], "is printed"),
        ("Much goes to “a”.", {"a": 0.75}, [MOST], "no template parses"),
        ("Most goes to “a” (0.75).", {"a": 0.75}, [MOST, MOST], "all parse"),
    ],
)
def test_what_does_not_hold_fails(sentence, numbers, templates, why) -> None:
    with pytest.raises(AssertionError, match=why):
        hold([sentence], numbers, templates)


@pytest.mark.parametrize(
    ("printed", "value"),
    [("0.31", 0.3149), ("31 %", 0.3149), ("31%", 0.3149), ("+1,204", 1203.6), ("−0.5", -0.52), ("0.00", -0.001)],
)
def test_figures_as_they_are_printed(printed, value) -> None:
    shows(printed, value)


def test_no_file_here_imports_a_renderer() -> None:
    for file in Path(__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                drawn = name.startswith("regard.questions") and name.endswith(".panels")
                assert not drawn, (file, name)
                assert not name.startswith(RENDERERS), (file, name)
