"""A verb made of a question: its options are the question's fields, and the library's method has them too."""

import inspect
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from regard.cli.outputs import GROUPS
from regard.cli.verb import INPUTS, verb_of_question
from regard.display.query import Query, option_name
from regard.explain.weights.head_means import content_or_position, repeated_tokens
from regard.models.source import Source
from regard.plugins import REQUESTS, ours
from regard.questions.attribution.direct import attribution
from regard.questions.attribution.gradients import attribute_to_tokens
from regard.questions.patch.sweep import patch_sweep
from regard.questions.why.score import score_sources
from tests.support import run_in_process

QUERIES: dict[str, type[Query]] = {
    name: query for name, query in ours("regard.questions").items() if isinstance(query, type)
}
ASKED_BY_PAGES: dict[str, type[Query]] = ours(REQUESTS)


@pytest.mark.parametrize("name", QUERIES)
def test_a_verb_has_the_options_of_its_question_and_those_of_all(name: str) -> None:
    query = QUERIES[name]
    verb = verb_of_question(name, query)
    own = {each.name for each in fields(query)}
    files = {option for group in query.files for option in GROUPS[group]}
    shared = {"texts", *query.inputs, *(["everything"] if query.full else [])}
    assert set(query.inputs) <= set(INPUTS) <= {each.name for each in fields(Source)}
    assert set(inspect.signature(verb).parameters) == own | shared | files
    assert verb.__doc__ == query.__doc__
    app = typer.Typer()
    app.command()(verb)
    text = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}).output
    told = " ".join(text.replace("│", " ").split())
    assert all(each in told for each in query.texts)
    for each in fields(query):
        assert option_name(each.name) in text
        assert " ".join(each.metadata["help"].split()[:3]) in told


METHODS: dict[str, tuple[tuple[Any, ...], set[str]]] = {
    # the functions of the library that answer it; and fields that make an argument of another name: an outcome, a unit,
    # or which function it is
    "attribute": ((attribution, attribute_to_tokens), {"at", "by", "like", "method", "to", "word", "top"}),
    "heads": ((repeated_tokens, content_or_position), {"tests", "store"}),
    "patch": ((patch_sweep,), {"to", "against", "word", "noising"}),
    "score": ((score_sources,), set()),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_the_librarys_methods_have_the_fields_as_their_parameters(name: str) -> None:
    functions, renamed = METHODS[name]
    parameters = {each for function in functions for each in inspect.signature(function).parameters}
    own = {each.name for each in fields((QUERIES | ASKED_BY_PAGES)[name])}
    assert renamed <= own
    assert own - renamed <= parameters


def test_bad_values_are_named_by_the_option(tmp_path: Path) -> None:
    for arguments, says in (
        (["patch", "a", "b", "--layers", "x"], "--layers"),
        (["attribute", "a", "--to", "a", "--top", "0"], "--top: got 0, expected 1 or more"),
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
