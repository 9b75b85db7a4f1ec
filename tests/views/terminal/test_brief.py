"""What was found fits one screen, and every number on it is the summary's."""

import io

import pytest
from rich.console import Console

from regard.explain.findings.see import findings
from regard.explain.texts.summary import Summary, summarise
from regard.models.control import trace_control
from regard.views.terminal.brief import MOST_LAYERS, MOST_ROWS, show


def printed(summary: Summary, width: int = 80, **options) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, **options)
    show(summary, console, took=1.0)
    return console.file.getvalue()


def test_the_findings_come_first(bank, minilm) -> None:
    summary = summarise(bank, "bank", references=minilm.trace(["money", "river"]))
    out = " ".join(printed(summary).split())
    place = 0
    for sentence in findings(summary):
        place = out.index(sentence, place)
    assert (
        place
        < out.index("layer cosine text 1 looks at")
        < out.index("cosine to text 1 text 2")
        < out.index("more: --all")
    )


def test_the_tables_are_the_summarys(bank, minilm) -> None:
    control = trace_control(minilm, bank, "bank")
    summary = summarise(bank, "bank", references=minilm.trace(["money", "river"]), control=control)
    lines = [line.split() for line in printed(summary).splitlines()]
    for layer in range(6):
        (row,) = [line for line in lines if line[:1] == [str(layer)] and line[1].startswith("0.")]
        assert row[1] == f"{summary.pairs[0].hidden_states[layer + 1]:.2f}"
        best = summary.occurrences[0].attends[layer].top[0]
        assert (row[2], f"{best.weight:.2f}" in row) == (best.text, True)
    (river,) = [line for line in lines if line[:1] == ["river"] and "to" in line]
    of = {r.occurrence: r.contextual for r in summary.references if r.word == "river"}
    among = next(each for each in summary.neutral if each.word == "river")
    ranged = [f"{among.mean[-1]:.2f}", f"({among.low[-1]:.2f}", "to", f"{among.high[-1]:.2f})"]
    assert river[1:] == [*ranged, f"{of['1']:.2f}", "towards", f"{of['2']:.2f}"]
    assert not any("→" in line for line in lines if line[:1] in (["river"], ["money"]))


@pytest.fixture(scope="module")
def summaries(bank, minilm):
    """Of two texts and of a long one, with a word and without: made once, for every width."""
    long = minilm.trace("a withdrawal " * 40)
    return (
        summarise(bank, "bank", layer=1),
        summarise(bank),
        summarise([long]),
        summarise([long], "withdrawal"),
    )


@pytest.mark.parametrize("width", [60, 80, 140])
def test_nothing_is_wider_than_the_terminal(summaries, width: int) -> None:
    for summary in summaries:
        assert max(len(line) for line in printed(summary, width).splitlines()) <= width


def test_what_is_left_out_is_said(minilm) -> None:
    out = printed(summarise([minilm.trace("a withdrawal " * 40)], "withdrawal"))
    assert f"… and {40 - MOST_ROWS} more occurrences" in out
    assert "lines of its 82 tokens are not shown" in out
    deep = summarise([minilm.trace("a river bank")], "bank")
    assert "are left out" not in printed(deep)
    assert MOST_LAYERS >= 6


def test_markup_and_escapes_are_text(minilm) -> None:
    trace = minilm.trace("a [bold]river[/bold] \x1b[31m bank")
    for summary in (summarise([trace], "bank"), summarise([trace], "31m"), summarise([trace])):
        out = printed(summary)
        assert "\x1b" not in out
        assert "bold" in out


def test_single_heads_that_were_asked_for(bank) -> None:
    assert "single heads of layer 2" in printed(summarise(bank, "bank", layer=2, head=1))
