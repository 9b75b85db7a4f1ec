"""The verbs and their options: how many there are, what a name means in each, and what an old name means."""

from collections import defaultdict
from typing import Any

import typer

from regard.cli.help import OPTIONS as OPTION_TEXTS
from regard.cli.main import load_verbs

COMMANDS: dict[str, Any] = typer.main.get_command(load_verbs()).commands  # type: ignore[attr-defined]
OPTIONS = 252 / 23  # options per command: the number may only fall
ENTRIES = 186 / 23  # the same, with all options of files of a command counted once: they are declared together
# with --save and what begins so
FILES = {"--figure", "--shape", "--html", "--html-with", "--csv", "--parquet", "--json"}
# Of a name that has several values or help sentences: how many. What each of these means is the same everywhere, but
# its values are the verb's own, and stand in its help: the units of --by, the methods of --method; --like is a word of
# the text in `attribute`, and in `find` a sentence that has the word. The list may only become shorter.
SEVERAL = {"--by": 2, "--like": 2, "--method": 2}


def options(verb: str) -> list[Any]:
    """What a verb may be given beside its arguments, but for --help."""
    return [each for each in COMMANDS[verb].params if each.opts[0].startswith("--") and each.opts[0] != "--help"]


def test_the_verbs_and_how_many_options_they_have() -> None:
    names = [[each.opts[0] for each in options(verb)] for verb in COMMANDS]
    files = [{name for name in each if name in FILES or name.startswith("--save")} for each in names]
    assert sum(map(len, names)) <= OPTIONS * len(COMMANDS)
    entries = sum(len(each) - len(own) + bool(own) for each, own in zip(names, files, strict=True))
    assert entries <= ENTRIES * len(COMMANDS)


def test_every_sentence_of_help_ends() -> None:
    for verb in COMMANDS:
        assert all(each.help.endswith((".", "…")) for each in options(verb)), verb


def test_an_option_means_the_same_in_every_verb() -> None:
    said = defaultdict(set)
    for verb in COMMANDS:
        for each in options(verb):
            said[each.opts[0]].add((each.metavar, each.help))
    assert {name.partition("/")[0] for name in OPTION_TEXTS} <= {
        name for v in COMMANDS for o in options(v) for name in o.opts
    }
    assert {name: len(meanings) for name, meanings in said.items() if len(meanings) > 1} == SEVERAL
