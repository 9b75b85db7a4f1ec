"""What made an outcome, in a terminal."""

from regard.views.terminal.attribution import render
from regard.views.terminal.layout import lines_of
from tests.explain.findings.test_attribution import BY_HEADS, BY_TOKENS, DIRECT


def rows(found, by="token", top=10) -> list[list[str]]:
    lines = lines_of(render(found, by, top), 100)
    kept = [line.replace("█", "").split() for line in lines if "+" in line or "−" in line]
    return [[word for word in line if not set(word) <= set(" ▏▎▍▌▋▊▉█")] for line in kept]


def test_parts_and_their_sum() -> None:
    assert rows(DIRECT, top=2) == [
        ["layer", "0,", "head", "1", "from", "“river”", "(0)", "+2.00"],
        ["layer", "1,", "head", "0", "from", "“run”", "(2)", "−1.50"],
        ["3", "others", "together", "+1.51"],
        ["sum", "+2.01"],
        ["attention", "from", "“river”", "(0)", "+2.00"],
        ["attention", "from", "“run”", "(2)", "−1.50"],
        ["1", "other", "+1.00"],
        ["sum", "+1.50"],
    ]
    assert rows(DIRECT, "word")[0] == ["layer", "0,", "head", "1", "from", "“rivers”", "(0)", "+3.00"]


def test_tokens_words_and_heads() -> None:
    assert rows(BY_TOKENS, "word") == [["“rivers”", "(0)", "+3.00"], ["“run”", "(2)", "−0.50"], ["sum", "+2.50"]]
    assert rows(BY_HEADS, top=1) == [["layer", "0,", "head", "1", "+2.00"]]  # and no sum: they do not make the outcome
    assert any(
        "3 smaller ones are left out here, in --json" in line for line in lines_of(render(BY_HEADS, "token", 1), 90)
    )
