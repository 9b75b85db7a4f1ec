"""Sentences about translations and repeated words name the tokens and weights of the summary."""

import re

import pytest

from regard.explain.texts.summary import summarise
from regard.questions.see.answer import seen
from regard.questions.see.sentences import findings
from regard.trace.trace import PairTrace
from tests.said.reading import names_in, plain_and_few, reads, shown_with_its_numbers
from tests.support.own_models import translator


@pytest.fixture
def pair_of_texts() -> PairTrace:
    text, target = "a bank of a river", "la rive"
    return translator(text, target).trace(text, target=target)


@pytest.mark.parametrize("word", [None, "rive", "bank"])
def test_a_translation_names_the_largest_weights_as_its_words_are_written(pair_of_texts, word: str | None) -> None:
    found = seen([pair_of_texts], word)
    shown_with_its_numbers(found)
    alignment, target = found.summary.target.alignments[0], pair_of_texts.decoder.tokens
    rows = [row for row in alignment.tokens if row.written and row.written.top and not target[row.token].special]
    if word is not None:
        rows = [row for row in rows if word in (row.text, row.written.top[0].text)]
    if not rows:
        return
    best = max(rows, key=lambda row: row.written.top[0].weight)
    first = found.findings()[0]
    if word is None and best.written.top[0].weight < 0.3:
        assert first == "No translated word attends most to a source word with weight 0.30 or more."
        return
    assert names_in(first)[:2] == [best.text, best.written.top[0].text]
    assert reads(re.findall(r"\((\d\.\d+)\)", first)[0], best.written.top[0].weight)


def test_repeated_tokens_have_their_numbers(minilm) -> None:
    trace = minilm.trace("the cat saw the dog and the dog ran")
    for sentence in findings(summarise([trace])):
        for name, number in re.findall(r"“(\w+)”( \(\d+\))?", sentence):
            assert bool(number) == (name in ("the", "dog"))


def test_ordinary_weights_are_not_called_unusual(minilm) -> None:
    trace = minilm.trace("cat red not")
    whole, of_word = seen([trace]), seen([trace], "red")
    assert whole.summary.highlights[0].links == []  # the largest is 0.22, expected 0.20
    assert not any("attends" in sentence for sentence in whole.findings())
    assert of_word.summary.occurrences[0].link is None
    assert of_word.findings()[0] == "No head attends unusually strongly from “red” to another word."
    for answer in (whole, of_word):
        assert answer.page().opening["token"] == 2
        answer.plot()


def test_a_word_in_other_spellings_and_pieces(minilm) -> None:
    traces = minilm.trace(["an unwatchable film", "Unwatchable, they said."])
    plain_and_few(findings(summarise(traces, "unwatchable")))
    plain_and_few(findings(summarise(minilm.trace(["a bank", "money"] * 3))))
