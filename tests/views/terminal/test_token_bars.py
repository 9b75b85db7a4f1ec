"""A bar is as high as the weight under its token."""

import io

import pytest
from rich.console import Console

from regard.explain.findings.looks import layer_looked_at
from regard.explain.texts.summary import summarise
from regard.views.terminal.layout import spelled
from regard.views.terminal.token_bars import BARS, FULL, token_bars


def lines_of(parts, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    for part in parts:
        console.print(part)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 200])
def test_bars_are_the_weights(bank, width: int) -> None:
    summary = summarise(bank, "bank")
    lines = lines_of(token_bars(summary, width), width)
    weights = summary.occurrences[0].attends[layer_looked_at(summary)].weights
    marked = [line for line in lines if any(bar in line for bar in BARS[1:])]
    read = []
    for names, bars in ((lines[lines.index(line) - 1], line) for line in marked):
        if names.startswith("2") or (read and len(read) == len(weights)):
            break
        place = 3
        for token in summary.tokens[0][len(read) :]:
            name = spelled(token.text, 1000)
            if names[place : place + len(name)] != name:
                break
            read.append(bars.ljust(len(names))[place])
            place += len(name) + 1
    assert len(read) == len(weights)
    steps = len(BARS) - 1
    assert read == [BARS[min(steps, round(weight / FULL * steps))] for weight in weights]


def test_a_long_text_shows_the_lines_around_the_word(minilm) -> None:
    text = "one two three four five six seven eight nine ten " * 12 + "bank " + "one two three four " * 20
    lines = lines_of(token_bars(summarise([minilm.trace(text)], "bank"), 80), 80)
    assert any("bank" in line for line in lines)
    assert any("lines of its" in line and "are not shown" in line for line in lines)
    assert len(lines) < 15


def test_many_texts(minilm) -> None:
    lines = lines_of(token_bars(summarise(minilm.trace(["a bank"] * 6), "bank"), 80), 80)
    assert "… and 2 more texts" in lines
