"""What a tokenizer does not know is said first, with exact counts, and does not flood the status."""

import io
from typing import Any

import pytest
import typer
from rich.console import Console

from regard.cli.main import app
from regard.questions.map.whole import matrix
from regard.questions.see.answer import seen
from regard.views.terminal.unknown_tokens import of_traces, unknown_first
from tests.support import RIVER

COMMANDS: Any = typer.main.get_command(app).commands  # type: ignore[attr-defined]
CHINESE = "人们在银行里存钱。河岸上有人钓鱼。"


@pytest.fixture(scope="module")
def chinese(minilm):
    return minilm.trace(CHINESE)


def count(minilm, trace) -> str:
    """As anyone would count them."""
    return f"{sum(token.id == minilm.tokenizer.unk_token_id for token in trace.tokens)} of {len(trace.tokens)} tokens"


def told(texts) -> str:
    return " ".join(" ".join(text.plain for text in unknown_first(texts)).split())


def printed(show, *what) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    show(*what, console)
    return console.file.getvalue()


def test_it_is_said_first_and_in_one_line(minilm, chinese) -> None:
    assert count(minilm, chinese) == "8 of 19 tokens"
    for out in (str(seen([chinese])), str(seen([chinese], "河"))):
        first = " ".join(out.split("\n\n")[0].split())
        assert first == (
            "8 of 19 tokens unknown to the tokenizer of all-MiniLM-L6-v2: “们”, “在”, “银” and 5 more. To the model "
            "they are all the same; a model for that language or script reads them: --model M"
        )
    assert str(matrix(chinese, 1)).startswith("8 of 19 tokens unknown")


def test_several_texts_are_named(minilm, chinese, bank) -> None:
    emoji = minilm.trace("a bank 🏦")
    line = told(of_traces([chinese, *bank, emoji]))
    assert line.startswith("8 of 19 tokens of text 1, 1 of 5 tokens of text 4 unknown to the tokenizer")
    assert line == told(seen([chinese, *bank, emoji]).about.sides)


def test_nothing_is_said_of_known_texts(bank) -> None:
    assert unknown_first(of_traces(bank)) == []
    assert str(seen(bank)).startswith("• ")


def test_a_long_text_does_not_flood_the_status(minilm) -> None:
    trace = minilm.trace(CHINESE * 20)
    assert len(trace.status.unknown) == 160
    out = " ".join(str(seen([trace], "行")).split())
    assert "160 of 342 tokens unknown to the tokenizer" in out


def test_windows_count_the_whole_text(minilm) -> None:
    read = minilm.trace(f"{CHINESE} {RIVER}", window=16)
    assert told(of_traces([read])).startswith(f"8 of {len(read.tokens)} tokens unknown")


def test_verbs_say_it_first(minilm, monkeypatch, capsys) -> None:
    monkeypatch.setattr("regard.models.load.load", lambda name=None: minilm)
    for verb, *arguments in (
        ["see", f"{CHINESE} {RIVER}", "--word", "bank", "--window", "16"],
        ["steps", "a 銀 bank", "--word", "bank"],
        ["why", "a 銀", "--word", "a", "--top", "1"],
    ):
        COMMANDS[verb].main(arguments, prog_name=verb, standalone_mode=False)
        first = capsys.readouterr().out.split("\n\n")[0]
        assert "unknown to the tokenizer of all-MiniLM-L6-v2: “" in " ".join(first.split())
