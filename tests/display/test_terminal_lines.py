"""Named numbers stay whole, and a bar is as high as the number under its token."""

import pytest

from regard.display.panels import Shares, Strip
from regard.display.terminal_lines import MOST_LINES, in_lines, text_with_bars
from regard.views.terminal.layout import lines_of

BARS = " ▁▂▃▄▅▆▇█"


def test_a_name_and_its_number_stay_on_one_line() -> None:
    shares = Shares([("river", 0.25), ("bank", 0.125), ("a", 0.0625)])
    assert in_lines(shares, 24).plain == "river 0.250  bank 0.125\na 0.062"
    assert in_lines(Shares(shares.parts, one_line=True, mark="*"), 23).plain == "river 0.250*"
    assert in_lines(Shares(shares.parts[:1], signed=True, digits=1), 24).plain == "river +0.2"
    assert in_lines(Shares([]), 24).plain == "–"
    assert in_lines(Shares([("a\nb\x1b", 1.0)]), 24).plain == "a↵b\\x1b 1.000"


def strip(count: int, marked: int) -> Strip:
    values = [n / count for n in range(count)]
    tokens = [f"token{n}" for n in range(count)]
    return Strip(name="a", title="b", tokens=tokens, values=values, unit="u", full=0.5, marked=[marked], special=[0])


@pytest.mark.parametrize("width", [60, 200])
def test_bars_are_the_numbers(width: int) -> None:
    panel = strip(16, 3)
    lines = lines_of(text_with_bars(panel, width), width)
    read = []
    for names, bars in zip(lines[::2], lines[1::2], strict=True):
        at = 0
        for name in names.split():
            at = names.index(name, at)
            read.append(bars.ljust(len(names))[at])
            at += len(name)
    assert read == [BARS[min(8, round(value / 0.5 * 8))] for value in panel.values]


def test_of_a_long_text_the_lines_around_what_is_marked() -> None:
    lines = lines_of(text_with_bars(strip(400, 211), 80), 80)
    assert any("token211" in line for line in lines)
    assert len(lines) == 2 * MOST_LINES + 1
    assert "lines of its 400 tokens are not shown" in lines[-1]


def test_a_text_without_numbers_has_no_bars() -> None:
    panel = Strip(name="a", title="b", tokens=["a", " b"], values=[None, None], unit="u", full=1.0)
    assert lines_of(text_with_bars(panel, 80), 80) == ["a ␣b"]
