"""Where texts move a word: told where a cosine leaves the range of neutral sentences, and not otherwise."""

from dataclasses import replace

import pytest

from regard.explain.findings.movement import movement_findings
from regard.explain.texts.occurrences import Reference
from regard.explain.texts.summary import summarise
from regard.explain.vectors.neutral import Control, Neutral
from regard.models.control import trace_control
from regard.questions.see.sentences import findings

WORDS = ["river", "money", "loan", "deposit"]


@pytest.fixture(scope="module")
def seen(minilm, bank):
    """The articles' two sentences, against the neutral ones."""
    return summarise(bank, "bank", references=minilm.trace(WORDS), control=trace_control(minilm, bank, "bank"))


def test_the_articles_pair(seen) -> None:
    """The river text moves the word; the money text, in which money falls from 0.40 to 0.29, does nothing to it."""
    sentences = movement_findings(seen)
    assert len(seen.control.sentences) == 39
    assert sentences[0].startswith(
        "Text 1 moves “bank” towards “river” (cosine 0.48; in 39 neutral sentences 0.29 to 0."
    )
    assert "away from “loan” (0.32; " in sentences[0]
    assert sentences[1:] == [
        "In text 2 “bank” is not told apart from a neutral sentence by any of 4 words.",
        "Between the texts “river” differs most: 0.48 in text 1, 0.32 in text 2.",
    ]
    assert all(sentence in findings(seen) for sentence in sentences)
    assert not any("nearest" in each or "Before and after" in each for each in findings(seen))


def test_without_neutral_sentences_it_is_not_told(seen) -> None:
    reason = "Whether a text moves “bank” is not told: "
    without = replace(seen, neutral=[], control=None)
    assert movement_findings(without)[0] == f"{reason}there are no neutral sentences to hold it against."
    refused = replace(seen, neutral=[], control=Control([], "3 of 3 neutral sentences have “bank”, 12 are needed", []))
    assert movement_findings(refused)[0] == f"{reason}3 of 3 neutral sentences have “bank”, 12 are needed."
    assert movement_findings(replace(seen, references=[])) == []


def test_one_text_and_one_word(seen) -> None:
    one = replace(seen, occurrences=seen.occurrences[:1], texts=seen.texts[:1],
                  references=[Reference("river", "1", 0.25, 0.4849, [0.4849])])  # fmt: skip
    neutral = [Neutral("river", 39, [0.34], [0.29], [0.4849])]
    assert movement_findings(replace(one, neutral=neutral)) == [
        "In the text “bank” is not told apart from a neutral sentence: “river” 0.48, there 0.29 to 0.48."
    ]
    # 0.4849 is larger than 0.4848, but both are shown as 0.48: what is said is what can be seen
    close = [Neutral("river", 39, [0.34], [0.29], [0.4848])]
    assert "not told apart" in movement_findings(replace(one, neutral=close))[0]
    low = [Neutral("river", 39, [0.34], [0.29], [0.474])]
    assert movement_findings(replace(one, neutral=low)) == [
        "The text moves “bank” towards “river” (cosine 0.48; in 39 neutral sentences 0.29 to 0.47)."
    ]


def test_an_occurrence_of_other_tokens_is_not_told(seen) -> None:
    other = replace(seen, control=replace(seen.control, otherwise=["2"]))
    assert movement_findings(other)[1] == (
        "Whether text 2 moves “bank” is not told: there “bank” is of other tokens than in the neutral sentences."
    )
