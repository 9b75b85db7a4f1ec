"""A verb made of a question: its options are the question's fields, and the library's method has them too."""

import inspect
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from regard.cli.asking import ask, command_option_name, verb_of_question
from regard.explain.weights.content_or_position import content_or_position
from regard.explain.weights.repeated_tokens import repeated_tokens
from regard.models.model import Model
from regard.questions import QUESTIONS
from regard.questions.attribution.heads import attribute_to_heads
from regard.questions.attribution.tokens import attribute_to_tokens
from regard.questions.patch.sweep import patch_sweep
from tests.support import run_in_process

SHARED = {"texts", "targets", "seconds", "model", "top", "figure", "html", "csv", "json_file"}


def asked_of(name: str) -> Any:
    module, _, kind = QUESTIONS[name][1].partition(":")
    return getattr(import_module(module), kind)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "score"])  # which `why --edge` asks
def test_a_verb_has_the_options_of_its_question_and_those_of_all(name: str) -> None:
    verb, asked = verb_of_question(name), asked_of(name)
    own = {each.name for each in fields(asked)}
    left_out = (set() if asked.ranked else {"top"}) | (set() if asked.pairs else {"seconds"})
    assert set(inspect.signature(verb).parameters) == own | SHARED - left_out
    assert set(inspect.signature(ask).parameters) == {"name", "asked"} | SHARED
    assert verb.__doc__ == asked.__doc__
    app = typer.Typer()
    app.command()(verb)
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}).output
    told = " ".join(text.replace("│", " ").split())
    assert ("--top" in text) == asked.ranked
    assert all(each in told for each in asked.texts)
    for each in fields(asked):
        assert command_option_name(each.name) in text
        assert " ".join(each.metadata["help"].split()[:3]) in told


METHODS: dict[str, tuple[tuple[Any, ...], set[str]]] = {
    # the functions of the library that answer it; and fields that make an argument of another name: an outcome, a unit,
    # or which function it is
    "attribute": (
        (Model.attribution, attribute_to_tokens, attribute_to_heads), {"at", "by", "like", "method", "to", "word"}
    ),
    "heads": ((repeated_tokens, content_or_position), {"tests"}),
    "patch": ((patch_sweep,), {"to", "against", "word", "noising"}),
    "score": ((Model.score_sources,), set()),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_the_librarys_methods_have_the_fields_as_their_parameters(name: str) -> None:
    functions, renamed = METHODS[name]
    parameters = {each for function in functions for each in inspect.signature(function).parameters}
    own = {each.name for each in fields(asked_of(name))}
    assert renamed <= own
    assert own - renamed <= parameters


def test_bad_values_are_named_by_the_option(tmp_path: Path) -> None:
    for arguments, says in (
        (["patch", "a", "b", "--layers", "x"], "--layers"),
        (["attribute", "a", "--to", "a", "--top", "0"], "--top: given 0, needs 1 or more"),
        (["patch"], "no text given: regard patch CLEAN CORRUPTED"),
        (["patch", "a", "b", "--word", "a", "--top", "3"], "--top"),
        (
            ["attribute", "a", "b", "--word", "a", "--method", "attribution-patching", "--top", "3"],
            "--top: the answer is",
        ),
        (["attribute", "a", "--word", "a", "--like", "a", "--steps", "many"], "--steps"),
    ):
        done = run_in_process(tmp_path, arguments)
        assert done.returncode == 2
        assert says in done.stderr
