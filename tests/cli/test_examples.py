"""Each verb's help ends with two examples that can be called."""

import shlex
from typing import Any

import pytest
import typer

from regard.cli.examples import EXAMPLES, examples_of
from regard.cli.main import app

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("verb", COMMANDS)
def test_help_ends_with_two_examples_that_are_understood(verb: str) -> None:
    command, examples = COMMANDS[verb], examples_of(verb)
    assert len(examples) == 2
    ending = command.get_help(command.make_context(verb, [], resilient_parsing=True)).splitlines()[-3:]
    assert ending == ["  Examples:", *(f"    {example}" for example in examples)]
    for example in examples:
        assert len(example) <= 76  # a terminal's line
        regard, called, *arguments = shlex.split(example)
        assert (regard, called) == ("regard", verb)
        assert command.make_context(verb, arguments).params


def test_every_example_is_of_a_verb() -> None:
    assert {example.split()[0] for example in EXAMPLES.splitlines()} == set(COMMANDS)
