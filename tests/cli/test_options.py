"""The verbs and their options: how many there are, and what a name means in each."""

from collections import defaultdict
from typing import Any

import typer

from regard.cli.main import app

COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
VERBS = (
    "see", "why", "attribute", "heads", "patch", "unseen", "serve", "map", "tokens", "positions", "steps", "train",
    "generate", "translate", "evolve", "embed", "find", "senses", "shift",
)  # fmt: skip
OPTIONS = 243  # of all verbs; the number may only fall
# Of a name that means another thing in another verb: how many help sentences it has. The list may only become shorter.
SEVERAL = {
    "--at": 2, "--by": 4, "--csv": 3, "--figure": 2, "--head": 5, "--layer": 7, "--layers": 2, "--like": 2,
    "--model": 5, "--open": 5, "--out": 2, "--part": 3, "--save": 2, "--steps": 2, "--store": 4, "--stride": 2,
    "--top": 5, "--window": 2, "--word": 4,
}  # fmt: skip


def options(verb: str) -> list[Any]:
    """What a verb may be given beside its arguments, but for --help."""
    return [each for each in COMMANDS[verb].params if each.opts[0].startswith("--") and each.opts[0] != "--help"]


def test_the_verbs_and_how_many_options_they_have() -> None:
    assert tuple(COMMANDS) == VERBS
    assert sum(len(options(verb)) for verb in VERBS) <= OPTIONS


def test_an_option_means_the_same_in_every_verb() -> None:
    said = defaultdict(set)
    for verb in VERBS:
        for each in options(verb):
            said[each.opts[0]].add((each.metavar, each.help))
    assert {name: len(meanings) for name, meanings in said.items() if len(meanings) > 1} == SEVERAL
