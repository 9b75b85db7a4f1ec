import pytest

import regard
from regard.explain.texts.summary import summarise
from regard.explain.texts.window_texts import unfold_texts_to_windows

TEXT = "the man went to the river bank and then " * 6 + "to the old bank of the town"


@pytest.fixture(scope="module")
def long(minilm):
    return minilm.trace(TEXT, window=20)


def test_every_occurrence_is_in_one_window_and_says_which(long) -> None:
    found = unfold_texts_to_windows([long], "bank")
    assert sum(len(words) for _, words in found.found) == 7
    summary = summarise(found.traces, "bank", unfolded=found)
    assert len(summary.occurrences) == 7
    assert summary.labels == [f"1.{each.window}" for each in summary.windows]
    for occurrence in summary.occurrences:
        assert occurrence.label.startswith(summary.labels[occurrence.text])
        window = summary.windows[occurrence.text]
        trace = long.windows[window.window]
        assert [trace.tokens[n].text for n in occurrence.tokens] == ["bank"]
        assert summary.texts[occurrence.text] == trace.text
    starts = sorted(
        summary.windows[o.text].start + token - 1 for o in summary.occurrences for token in o.tokens
    )  # numbers in the whole text: one special token stands before each window
    assert starts == [token for word in long.word("bank") for token in word.tokens]


def test_without_a_word_all_windows_are_shown(long) -> None:
    found = unfold_texts_to_windows([long, long], None)
    assert [(each.text, each.window) for each in found.windows] == [
        (text, n) for text in range(2) for n in range(len(long.windows))
    ]
    assert summarise(found.traces[:2], unfolded=None).labels == ["1", "2"]


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_windowed_traces_are_not_taken_for_texts(long) -> None:
    with pytest.raises(regard.RegardError, match="given WindowedTrace: needs traces; of a text read in windows th"):
        summarise([long], "bank")
    with pytest.raises(regard.RegardError, match="given no traces: needs traces"):
        summarise([])


def test_a_word_that_is_nowhere_is_refused(long, minilm) -> None:
    with pytest.raises(regard.RegardError, match="text 2: word 'bank' is not in the text"):
        unfold_texts_to_windows([long, minilm.trace("the old town", window=20)], "bank")
