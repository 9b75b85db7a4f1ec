"""Sentences about what was written are its probabilities and weights, and nothing that these do not bear."""

from dataclasses import replace

import pytest

from regard.explain.logits.predictions import Candidate
from regard.questions.generate.sentences import prompt_words, writing_findings
from regard.questions.generate.writing import Writing, WrittenToken
from regard.text.tokens import Token
from tests.support import in_text

WORDS = ["<s>", "once", "upon", "a", "time", "b"]
PLACES = [(0, 0), (0, 4), (5, 9), (10, 11), (12, 16), (17, 18)]
TOKENS = in_text([Token(n, text, *PLACES[n], None, n == 0) for n, text in enumerate(WORDS)])


@pytest.fixture
def found() -> Writing:
    first = WrittenToken(4, "time", 0.9, 0, [Candidate(4, "time", 0.9), Candidate(5, "b", 0.05)])
    second = WrittenToken(5, "b", 0.2, 1, [Candidate(4, "time", 0.7), Candidate(5, "b", 0.2)])
    return Writing(4, "length", [first, second], 0.25, 0.0, 0.5, 0.25, [0.25, 0.1, 0.35, 0.05, 0.2, 0.05], [])


def test_the_numbers_are_what_was_found(found: Writing) -> None:
    assert writing_findings(found, TOKENS) == [
        "It wrote 2 tokens after the 4 given, and stopped at the 2 tokens asked for.",
        "It gave 1 of the 2 a probability above 0.5; 1 is not what it found likeliest.",
        "Least likely was “b” (0.20, after “time”): likelier was “time” (0.70).",
        "Meanwhile its attention went 25% to special tokens, 50% to the rest of the prompt and 25% to what it had "
        "written (mean of all layers and heads).",
        "Of the prompt's words it looked most at “upon” (0.35).",
    ]


def test_the_likeliest_each_time(found: Writing) -> None:
    said = writing_findings(replace(found, tokens=[replace(each, rank=0) for each in found.tokens]), TOKENS)
    assert said[1].endswith("each is the one it found likeliest.")
    assert "next came “time” (0.70)" in said[2]


def test_nothing_was_written(found: Writing) -> None:
    assert writing_findings(replace(found, tokens=[], ended="end"), TOKENS) == [
        "It wrote nothing after the 4 tokens given and ended the text itself."
    ]


def test_one_token_and_no_word_of_the_prompt_that_counts(found: Writing) -> None:
    said = writing_findings(replace(found, tokens=found.tokens[:1], received=[0.01] * 6), TOKENS)
    assert said[1] == "It gave 1 of the 1 a probability above 0.5; it is the one it found likeliest."
    assert len(said) == 3
    assert not any("looked most" in sentence or "Least likely" in sentence for sentence in said)


PIECES = ["<s>", "micro", "##fin", "micro", "bank", "b"]
SPANS = [(0, 0), (0, 5), (5, 8), (9, 14), (15, 19), (20, 21)]
PIECED = in_text([Token(n, text, *SPANS[n], None, n == 0) for n, text in enumerate(PIECES)])


def test_words_are_taken_whole_and_sinks_left_out(found: Writing) -> None:
    own = replace(found, given=5, received=[0.2, 0.15, 0.15, 0.2, 0.25, 0.05])
    assert writing_findings(own, PIECED)[-1] == "Of the prompt's words it looked most at “microfin” (0.30)."
    sunk = replace(own, sink_tokens=[1])
    assert writing_findings(sunk, PIECED)[-1] == (
        "Of the prompt's words, the attention sink aside, it looked most at “bank” (0.25)."
    )
    assert [(list(word), share) for word, share in prompt_words(sunk, PIECED)] == [
        ([0], None), ([1, 2], None), ([3], 0.2), ([4], 0.25),
    ]  # fmt: skip
    least = replace(own, received=[0.2, 0.005, 0.01, 0.2, 0.01, 0.05])
    assert writing_findings(least, PIECED)[-1].endswith("it looked most at “micro” (0.20).")


def test_parts_that_are_nothing_are_left_out(found: Writing) -> None:
    said = writing_findings(replace(found, special=0.0, prompt=0.0, own=1.0), TOKENS)
    assert "Meanwhile its attention went 100% to what it had written (mean of all layers and heads)." in said
