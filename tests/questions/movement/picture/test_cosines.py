"""The numbers beside the path are the summary's."""

import pytest
from matplotlib.figure import Figure

from regard.explain.texts.summary import summarise
from regard.questions.movement.picture import cosines


@pytest.fixture(scope="module")
def summary(bank, minilm):
    return summarise(bank, "bank", references=[minilm.trace(word) for word in ("money", "river")])


def test_a_line_for_each_two_occurrences(summary, minilm) -> None:
    axes = Figure().add_subplot()
    cosines.paint_pairs(axes, summary, cosines.named(summary))
    (line,) = axes.lines
    assert list(line.get_ydata()) == summary.pairs[0].hidden_states
    three = summarise([minilm.trace("The bank near a bank is a bank.")], "bank")
    axes = Figure().add_subplot()
    cosines.paint_pairs(axes, three, cosines.named(three))
    assert {line.get_gid(): list(line.get_ydata()) for line in axes.lines} == {
        f"pair {pair.a} {pair.b}": pair.hidden_states for pair in three.pairs
    }


def test_there_are_pairs_of_two_occurrences_alone(summary, bank) -> None:
    assert cosines.has_pairs(summary)
    assert not cosines.has_pairs(summarise(bank[:1], "bank"))
