"""What moved a word fits one screen; every bar and number is a ranking's."""

from dataclasses import replace

import pytest

from regard.explain.causes.why import Cause, Why
from regard.explain.findings.why import why_findings
from regard.views.terminal.why import MOST_ROWS, show_why_shortly
from tests.support.terminal import printed


@pytest.fixture
def why() -> Why:
    tokens = [Cause(f"word{n}", n, None, None, 0.01 * n, 0.1, 0.5**n) for n in range(20)]
    heads = [Cause(f"cross layer 11, head {n}", None, 11, n, 0.5, 0.1, 0.3**n) for n in range(20)]
    return Why("bank", tokens, heads, (0.7, 0.9), (0.5, 0.5))


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 12])
def test_one_screen(bank, why: Why, width: int, count: int) -> None:
    found = [(str(n + 1), why) for n in range(count)]
    lines = printed(show_why_shortly, found, [bank[0].status], 10, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    assert " ".join(why_findings(found)[0].split()[:4]) in lines[0]
    assert "more: --all" in lines[-1] or width < 80
    assert any(f"… and {12 - MOST_ROWS} more occurrences" in line for line in lines) == (count == 12)


def test_bars_are_as_long_as_the_changes(bank, why: Why) -> None:
    lines = printed(show_why_shortly, [("1", why)], [bank[0].status], 10, width=120).splitlines()
    rows = [line for line in lines if line.startswith("word")]
    assert len(rows) == MOST_ROWS
    assert rows[0].split()[:3] == ["word0", "(0)", "1.000"]
    assert rows[0].split()[3] == 2 * rows[1].split()[3]
    assert "cross layer 11, head 0" in rows[0]


def test_special_tokens_alone(bank, why: Why) -> None:
    apart = replace(why, tokens=[replace(cause, special=True) for cause in why.tokens])
    assert "–" in printed(show_why_shortly, [("1", apart)] * 3, [bank[0].status], 10)
