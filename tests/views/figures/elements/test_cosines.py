"""The numbers beside the path are the summary's."""

import pytest
import torch
from matplotlib.figure import Figure

from regard.explain.texts.summary import summarise
from regard.views.figures.elements import cosines


@pytest.fixture(scope="module")
def summary(bank, minilm):
    return summarise(bank, "bank", references=[minilm.trace(word) for word in ("money", "river")])


def test_arrows_lead_from_before_to_after(summary) -> None:
    axes = Figure().add_subplot()
    cosines.paint_references(axes, summary, cosines.named(summary))
    drawn = {line.get_gid(): line.get_xdata() for line in axes.lines if line.get_gid()}
    expected = {
        f"cosines {each.occurrence} {each.word}": [each.learned, each.contextual] for each in summary.references
    }
    assert {name: list(ends) for name, ends in drawn.items()} == expected
    assert {text.get_text() for text in axes.texts if text.get_text()} == {
        f"{each.occurrence}: {each.contextual:.2f}" for each in summary.references
    }
    assert [label.get_text() for label in axes.get_yticklabels()] == ["money", "river"]


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


def test_one_occurrence_beside_its_own_start(bank) -> None:
    alone = summarise(bank[:1], "bank")
    assert cosines.parts(alone) == [cosines.paint_starts]
    axes = Figure().add_subplot()
    cosines.paint_starts(axes, alone, cosines.named(alone))
    (line,) = axes.lines
    states = torch.tensor(alone.occurrences[0].hidden_states, dtype=torch.float64)
    expected = torch.cosine_similarity(states[:1], states)
    torch.testing.assert_close(torch.tensor(line.get_ydata()), expected)


def test_what_there_is_to_show(summary, bank) -> None:
    assert cosines.parts(summary) == [cosines.paint_references, cosines.paint_pairs]
    assert cosines.parts(summarise(bank, "bank")) == [cosines.paint_pairs]
