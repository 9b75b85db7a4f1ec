import io
import re

import pytest
from rich.console import Console

from regard.explain.texts.summary import summarise
from regard.models.control import trace_control
from regard.views.terminal.layout import shares, spelled, visible
from regard.views.terminal.summary import show


def printed(summary, width: int = 80, **options) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False, **options)
    show(summary, console)
    return console.file.getvalue()


def test_a_word_in_two_texts(bank, minilm) -> None:
    control = trace_control(minilm, bank, "bank")
    references = minilm.trace(["money", "river"])
    out = printed(summarise(bank, "bank", references=references, control=control, layer=0, head=3))
    assert "\x1b" not in out
    for expected in (
        "1  [CLS] write a poem about a man fishing on a river bank . [SEP]",
        "The learned embeddings are equal to the last bit.",
        "after layer 5    0.847",
        "0     0.269   river 0.252  fishing 0.116  poem 0.081",
        "towards",
        "nothing follows from the",
        "the word in 39 sentences",
        "model       all-MiniLM-L6-v2",
        "of the model's own attention on the same",
        "unknown     no characters",
    ):
        assert expected in out
    assert re.search(r"money +1 +0\.248 +0\.3\d\d \(0\.2\d\d to 0\.\d\d\d\) +0\.398", out)


@pytest.fixture(scope="module")
def summaries(bank, minilm):
    """Of two texts and of a long one, with a word and without: made once, for every width."""
    long = minilm.trace("a withdrawal " * 20)
    return (
        summarise(bank, "bank", layer=1),
        summarise(bank),
        summarise([long]),
        summarise([long], "withdrawal"),
    )


@pytest.mark.parametrize("width", [80, 81, 120])
def test_nothing_is_wider_than_the_terminal(summaries, width: int) -> None:
    for summary in summaries:
        assert max(len(line) for line in printed(summary, width).splitlines()) <= width


def test_many_occurrences_are_said_not_dropped(minilm) -> None:
    out = printed(summarise([minilm.trace("a bank " * 7)], "bank"))
    assert "21 pairs in all; shown are those with occurrence 1a" in out
    assert "1a · 1g" in out


def test_colours_on_a_terminal(bank) -> None:
    out = printed(summarise(bank, "bank"), force_terminal=True, color_system="truecolor")
    assert "\x1b[2m[CLS]" in out  # special tokens are dimmed
    assert "48;2;" in out  # others are coloured


def test_the_overview_marks_rows_that_special_tokens_take(bank) -> None:
    out = printed(summarise(bank))
    assert "Text 1: where each token looks most (mean of heads)" in out
    assert "11 bank" in out
    assert "river 0.25" in out
    assert "river 0.08*" in out


def test_text_gives_no_orders_to_the_terminal(minilm) -> None:
    assert visible("a\x1b[31m\u202eb") == "a\\x1b[31m\\u202eb"
    out = printed(summarise([minilm.trace("a [red]bank[/red] \x07\x1b[31m")], "bank"))
    assert "\x1b" not in out
    assert "[ red ]" in out
    assert "dropped" in out


def test_unknown_parts_are_named(minilm) -> None:
    out = printed(summarise([minilm.trace("a bank 銀 \u0001")], "bank"))
    assert "unknown     “銀” in text 1 (to the tokenizer)" in out
    assert "dropped     “\\x01” in text 1 (by the tokenizer)" in out


def test_unknown_reference_words_are_named(bank, minilm) -> None:
    out = printed(summarise(bank, "bank", references=[minilm.trace("money"), minilm.trace("🏦")]))
    assert "unknown     “🏦” in --with 🏦" in out


def test_equal_vectors_of_an_unknown_word_are_no_news(minilm) -> None:
    out = printed(summarise(minilm.trace(["a 銀", "the 銀"]), "銀"))
    assert "equal to the last bit, but the tokenizer does not know the word" in " ".join(out.split())


def test_tokens_that_repeat_have_numbers(minilm) -> None:
    out = printed(summarise([minilm.trace("the bank by the bank")], "by"))
    assert "bank (2) " in out
    assert "bank (5) " in out
    assert "by (" not in out


def test_tokens_of_a_vocabulary_show_their_blanks() -> None:
    assert [spelled(text) for text in (" bank", "bank", "bank ", "  ", "\n", "")] == [
        "␣bank", "bank", "bank␣", "␣␣", "↵", "",
    ]  # fmt: skip


def test_a_name_and_its_number_stay_on_one_line() -> None:
    assert shares([("river", 0.25), ("bank", 0.125), ("a", 0.0625)], 24).plain == "river 0.250  bank 0.125\na 0.062"
