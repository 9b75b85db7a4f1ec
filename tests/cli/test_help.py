"""What --help promises of every verb, held against what the verb does; no model is loaded."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from regard.cli.main import USAGE_ERROR, VERBS, load_verbs
from regard.errors import RegardError
from tests.support.web_pages import build_nothing

DEFAULT = "all-MiniLM-L6-v2"
COMMANDS: dict[str, Any] = typer.main.get_command(load_verbs()).commands  # type: ignore[attr-defined]
NEEDED = {  # what a call needs beside its texts, as --help says it; of other verbs nothing
    "why": ["--word", "text"],
    "attribute": ["--to", "a"],
    "patch": ["--to", "a"],
    "steps": ["--word", "text"],
    "generate": ["--model", "m"],
    "translate": ["--model", "m"],
    "train": ["--out", "run"],
    "embed": ["--out", "s"],
    "find": ["--store", "s"],
    "senses": ["--store", "s"],
    "shift": ["--store", "s"],
}
COMMAND_EXAMPLES: dict[str, Any] = typer.main.get_command(load_verbs()).commands  # type: ignore[attr-defined]


def needed(verb: str) -> list[str]:
    """What a call of a verb needs beside its texts."""
    return NEEDED.get(verb, [])


def promises(verb: str) -> dict[str, str]:
    """The help of each option, with what it says of the default, and "required" where the parser asks for it."""
    return {
        each.opts[0]: f"{each.help} {each.show_default} {'required' * each.required}"
        for each in COMMANDS[verb].params
        if each.opts[0].startswith("--") and "required with --towards" not in str(each.show_default)
    }


def test_a_table_is_promised_where_there_is_one() -> None:
    for row, verbs in (("a row for each occurrence", {"find", "senses", "shift"}), ("a row for each head", {"heads"})):
        assert {verb for verb in COMMANDS if row in " ".join(COMMANDS[verb].help.split())} == verbs


@pytest.fixture
def call(monkeypatch, tmp_path: Path):
    """Run a verb as far as to where it would load something: what it would load, or what it refuses."""

    def stop(kind: str):
        def loaded(name: Any = None, *_: Any, **__: Any) -> Any:
            raise RegardError(f"{kind}: {name}")

        return loaded

    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a text", encoding="utf-8")
    monkeypatch.setattr("regard.models.load.load", stop("loads"))
    for place in ("regard.questions.tokens", "regard.models.load"):  # whose import takes the other as it is
        monkeypatch.setattr(f"{place}.load_tokenizer", stop("loads"))
    monkeypatch.setattr("regard.corpus.embed_texts.load", stop("loads"))
    for place in ("regard.corpus.store_tables", "regard.corpus.verb"):
        monkeypatch.setattr(f"{place}.read_manifest", stop("reads"))
    monkeypatch.setattr("regard.train.evolve.open_watched", stop("reads"))
    monkeypatch.setattr("regard.train.follow.prepare_text_run", stop("trains"))
    build_nothing(tmp_path / "built", monkeypatch)
    (tmp_path / "watched" / "watch").mkdir(parents=True)
    (tmp_path / "watched" / "watch" / "step-000001.safetensors").touch()
    (tmp_path / "watched" / "run.json").touch()
    texts = {"map": ["a.txt"], "run": ["a.txt"], "train": ["a.txt"], "evolve": ["watched"]}
    monkeypatch.setattr("regard.course.lesson.run_lesson", stop("reads"))
    monkeypatch.setattr("regard.cli.fetch._download", stop("loads"))
    monkeypatch.setattr("regard.cli.run.check_readable", stop("reads"))
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("regard.diffusion.pipeline.load_pipeline", stop("loads"))
    (tmp_path / "watched" / "model_index.json").touch()
    texts |= {"paint": ["watched", "a cat on the mat"]}
    texts |= {
        "lesson": ["1"],
        "article": ["1"],
        "fetch": ["smollm2"],
        "embed": ["a.txt"],
        "shift": ["word", "--column", "date"],
        "patch": ["a text", "b text"],
    }

    def run(verb: str, *options: str) -> str:
        with pytest.raises((RegardError, USAGE_ERROR)) as refused:
            COMMANDS[verb].main([*texts.get(verb, ["a text"]), *options], prog_name=verb, standalone_mode=False)
        asked = refused.value  # where the parser itself asks for an option, it says so in its own words
        return str(asked) if isinstance(asked, RegardError) else f"{asked.param.opts[0]} is needed"

    return run


def test_every_verb_is_looked_at() -> None:
    assert set(NEEDED) < set(COMMANDS)
    for verb in COMMANDS:
        assert [option for option, text in promises(verb).items() if "required" in text.lower()] == needed(verb)[::2]


@pytest.mark.parametrize("verb", COMMANDS)
def test_what_is_needed_is_said_to_be_and_nothing_else(call, verb: str) -> None:
    """With what help calls needed a verb goes on to its work, without it it refuses, naming the option."""
    with_head = ["--model", "m"] if verb == "attribute" else []  # the default model says no next token
    assert call(verb, *needed(verb), *with_head).startswith(("loads: ", "trains: ", "reads: "))
    if needed(verb):
        assert call(verb).startswith(f"{needed(verb)[0]} is needed")


@pytest.mark.parametrize("verb", [verb for verb in COMMANDS if "--model" in promises(verb)])
def test_a_default_model_is_promised_where_there_is_one(call, verb: str) -> None:
    promised = DEFAULT in promises(verb)["--model"]
    others = [] if needed(verb)[:1] == ["--model"] else needed(verb)
    others = ["--word", "text", "--like", "a"] if verb == "attribute" else others
    assert (call(verb, *others) == "loads: None") == promised


@pytest.mark.parametrize("verb", [verb for verb in COMMANDS if "--word" in promises(verb)])
def test_an_overview_is_promised_where_there_is_one(call, verb: str) -> None:
    promised = "an overview" in promises(verb)["--word"]
    assert call(verb).startswith("loads: ") == promised


@pytest.mark.parametrize("verb", ["tokens", "generate"])
def test_all_promises_no_weights_where_none_are_shown(verb: str) -> None:
    assert "weight" not in promises(verb)["--full"]
    assert "layer" not in promises(verb)["--full"]


def test_what_a_call_may_be_given_is_said() -> None:
    assert "steer" in promises("generate")["--strength"]
    assert "--repeated" in str(COMMANDS["train"].help)
    assert "--column" in str(COMMANDS["shift"].help)


@pytest.mark.parametrize("verb", COMMAND_EXAMPLES)
def test_help_ends_with_two_examples_that_are_understood(verb: str) -> None:
    command, examples = COMMAND_EXAMPLES[verb], [f"regard {call}" for call in VERBS[verb].examples]
    assert len(examples) == 2
    ending = command.get_help(command.make_context(verb, [], resilient_parsing=True)).splitlines()[-3:]
    assert ending == ["  Examples:", *(f"    {example}" for example in examples)]
    for example in examples:
        assert len(example) <= 76  # a terminal's line
        regard, called, *arguments = shlex.split(example)
        assert (regard, called) == ("regard", verb)
        assert command.make_context(verb, arguments).params
