"""Looking at texts in one line is tracing them and looking at the traces."""

import pytest

import regard
from regard.explain.texts.summary import summarise


def test_several_texts_in_one_line(minilm) -> None:
    seen = regard.see(["a river bank", "a money bank"], "bank", references="river", model=minilm)
    traces = minilm.trace(["a river bank", "a money bank"])
    assert seen.summary.pairs == summarise(traces, "bank").pairs
    assert [each.text for each in seen.traces] == ["a river bank", "a money bank"]
    assert [each.word for each in seen.summary.references] == ["river", "river"]
    assert regard.see("a river bank", model=minilm).summary.word is None


def test_movement_has_a_control(minilm) -> None:
    """The package's sentences, those given, or too few of these."""
    seen = regard.see("We sat on a river bank.", "bank", references="river", model=minilm)
    assert seen.summary.control.sentences == regard.neutral_sentences("bank")
    assert seen.findings()[0].startswith("The text moves “bank” towards “river” (cosine ")
    own = [f"This is {{}} number {n}." for n in range(12)]
    given = regard.see("We sat on a river bank.", "bank", references="river", control=own, model=minilm)
    assert given.summary.neutral[0].sentences == 12
    few = regard.see("We sat on a river bank.", "bank", references="river", control=own[:3], model=minilm)
    reason = "3 of 3 neutral sentences have “bank”, 12 are needed"
    (note,) = [panel.note for panel in few.panels() if panel.brief]
    assert reason in note
    assert not any("neutral" in sentence for sentence in few.findings())
    assert regard.see("We sat on a river bank.", "bank", model=minilm).summary.control is None


def test_a_trace_was_traced_already(minilm, bank) -> None:
    with pytest.raises(regard.RegardError, match="model: it chooses how texts are traced, leave it out for a trace"):
        regard.see(bank, "bank", model=minilm)
