"""Named numbers stay whole, a bar is as high as the number under its token, and what is unknown is said first."""

import pytest

from regard.display.answer import Read
from regard.display.panels import Shares, Strip
from regard.display.terminal import MAX_LINES, in_lines, text_with_bars
from regard.display.terminal_parts import plain_lines_of_parts, unknown_tokens_line
from regard.questions.map.whole import matrix
from regard.questions.see.answer import seen
from tests.support import RIVER

CHINESE = "人们在银行里存钱。河岸上有人钓鱼。"
BARS = " ▁▂▃▄▅▆▇█"


def test_a_name_and_its_number_stay_on_one_line() -> None:
    shares = Shares([("river", 0.25), ("bank", 0.125), ("a", 0.0625)])
    assert in_lines(shares, 24).plain == "river 0.25  bank 0.12\na 0.06"
    assert in_lines(Shares(shares.parts, one_line=True, mark="*"), 20).plain == "river 0.25*"
    assert in_lines(Shares(shares.parts[:1], signed=True), 24).plain == "river +0.25"
    assert in_lines(Shares([]), 24).plain == "–"
    assert in_lines(Shares([("a\nb\x1b", 1.0)]), 24).plain == "a↵b\\x1b 1.00"


def strip(count: int, marked: int) -> Strip:
    values = [n / count for n in range(count)]
    tokens = [f"token{n}" for n in range(count)]
    return Strip(name="a", title="b", tokens=tokens, values=values, unit="u", full=0.5, marked=[marked], special=[0])


@pytest.mark.parametrize("width", [60, 200])
def test_bars_are_the_numbers(width: int) -> None:
    panel = strip(16, 3)
    lines = plain_lines_of_parts(text_with_bars(panel, width), width)
    read = []
    for names, bars in zip(lines[::2], lines[1::2], strict=True):
        at = 0
        for name in names.split():
            at = names.index(name, at)
            read.append(bars.ljust(len(names))[at])
            at += len(name)
    assert read == [BARS[min(8, round(value / 0.5 * 8))] for value in panel.values]


def test_of_a_long_text_the_lines_around_what_is_marked() -> None:
    lines = plain_lines_of_parts(text_with_bars(strip(400, 211), 80), 80)
    assert any("token211" in line for line in lines)
    assert len(lines) == 2 * MAX_LINES + 1
    assert "lines not shown (400 tokens in all)" in lines[-1]


def test_a_text_without_numbers_has_no_bars() -> None:
    panel = Strip(name="a", title="b", tokens=["a", " b"], values=[None, None], unit="u", full=1.0)
    assert plain_lines_of_parts(text_with_bars(panel, 80), 80) == ["a ␣b"]


@pytest.fixture(scope="module")
def chinese(minilm):
    return minilm.trace(CHINESE)


def count(minilm, trace) -> str:
    """As anyone would count them."""
    return f"{sum(token.id == minilm.tokenizer.unk_token_id for token in trace.tokens)} of {len(trace.tokens)} tokens"


def told(texts) -> str:
    return " ".join(" ".join(text.plain for text in unknown_tokens_line(texts)).split())


def test_it_is_said_first_and_in_one_line(minilm, chinese) -> None:
    assert count(minilm, chinese) == "8 of 19 tokens"
    for out in (str(seen([chinese])), str(seen([chinese], "河"))):
        first = " ".join(out.split("\n\n")[0].split())
        assert first.startswith(
            "8 of 19 tokens are unknown to the tokenizer of all-MiniLM-L6-v2: “们”, “在”, “银” and 5"
        )
        assert "--model" in first
    assert str(matrix(chinese, 1)).startswith("8 of 19 tokens are unknown")


def test_several_texts_are_named(minilm, chinese, bank) -> None:
    emoji = minilm.trace("a bank 🏦")
    line = told(Read.of(chinese, *bank, emoji).sides)
    assert line.startswith("8 of 19 tokens of text 1, 1 of 5 tokens of text 4 are unknown to the tokenizer")
    assert line == told(seen([chinese, *bank, emoji]).about.sides)


def test_nothing_is_said_of_known_texts(bank) -> None:
    assert unknown_tokens_line(Read.of(*bank).sides) == []
    assert "unknown" not in str(seen(bank))


def test_windows_count_the_whole_text(minilm) -> None:
    read = minilm.trace(f"{CHINESE} {RIVER}", window=16)
    assert told(Read.of(read).sides).startswith(f"8 of {len(read.tokens)} tokens are unknown")
