"""The effects on a word fit one screen; every bar and number is a ranking's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.display.answer import panel_data
from regard.questions.why.answer import Cause, Why, WhyOfTexts
from tests.support.terminal import printed

MOST = 10


@pytest.fixture
def why() -> Why:
    tokens = [Cause(f"word{n}", n, None, None, 0.01 * n, 0.1, 0.5**n) for n in range(20)]
    heads = [Cause(f"layer 11, head {n}", None, 11, n, 0.5, 0.1, 0.3**n) for n in range(20)]
    return Why("bank", tokens, heads, (0.7, 0.9), (0.5, 0.5))


def screen(found: Any, top: int, width: int = 80) -> list[str]:
    lines: list[str] = printed(lambda console: [console.print(each) for each in found.shown(width, top)], width=width)
    return lines.splitlines()


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_one_screen(why: Why, width: int, count: int) -> None:
    found = WhyOfTexts([(str(n + 1), why) for n in range(count)])
    lines = screen(found, 5 if count == 2 else MOST, width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    assert any(found.findings()[0][:20] in line for line in lines[5:])
    assert any("2 more rows" in line for line in lines) == (count == 12)


def test_bars_are_as_long_as_the_changes(why: Why) -> None:
    lines = screen(why, MOST, 120)
    rows = [line.split() for line in lines if line.strip().startswith("word") and "(" in line]
    (text,) = (line for line in lines if line.startswith("word0 word1 word2"))
    assert lines[lines.index(text) + 1].startswith("█████ ▄▄▄▄▄ ▂▂▂▂▂")
    assert len(rows) == MOST
    assert rows[0][:3] == ["word0", "(0)", "1.00"]
    assert rows[0][3] == 2 * rows[1][3]
    assert rows[0][5:7] == ["L11H0", "1.00"]


def test_special_tokens_alone(why: Why) -> None:
    apart = replace(why, tokens=[replace(cause, special=True) for cause in why.tokens])
    assert "text 1 –" in " ".join(" ".join(screen(WhyOfTexts([(str(n + 1), apart) for n in range(3)]), MOST)).split())


def test_the_rankings_of_causes(minilm: Any, tmp_path: Path) -> None:
    trace = minilm.trace("A man is fishing on a river bank.")
    why = regard.why(minilm, trace, "bank")
    text, tokens, heads = (panel_data(panel) for panel in why.panels())
    assert text["tokens"] == [token.text for token in trace.tokens]
    assert sorted(text["values"], reverse=True) == [cause.effect for cause in why.tokens]
    assert text["special"] == [n for n, token in enumerate(trace.tokens) if token.special]
    assert [tokens["name"], heads["name"]] == ["Tokens by effect", "Heads by effect"]
    rows = tokens["rows"]
    assert len(rows) == len(why.tokens)
    assert rows[0][1] == why.tokens[0].effect
    assert any(row[4] == "special" for row in rows)
    assert heads["rows"][0][0] == f"L{why.heads[0].layer}H{why.heads[0].head}"
    assert f"{why.heads_agreement[0]:.2f}" in heads["note"]
    why.draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 10_000
