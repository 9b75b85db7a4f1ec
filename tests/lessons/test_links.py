"""Lines between words: which are drawn, how wide, and what is written beside the keys."""

import torch
from matplotlib.figure import Figure

from drawings.links import links

WEIGHTS = torch.tensor([[0.7, 0.29, 0.01], [0.0, 0.52, 0.48]])


def test_every_query_and_every_weight_that_is_large_enough() -> None:
    axes = Figure().add_subplot()
    links(axes, WEIGHTS, ["ich", "du"], ["I", "you", "he"], title="both")
    widths = sorted(round(line.get_linewidth() / 7, 3) for line in axes.lines)
    assert widths == [0.29, 0.48, 0.52, 0.7]
    assert [text.get_text() for text in axes.texts] == ["ich", "du", "I", "you", "he"]
    assert axes.get_title() == "both"


def test_one_query_with_its_numbers() -> None:
    axes = Figure().add_subplot()
    links(axes, WEIGHTS, ["ich", "du"], ["I", "you", "he"], followed=[1])
    assert len(axes.lines) == 2
    assert [text.get_text() for text in axes.texts] == ["ich", "du", "I", "you  0.52", "he  0.48"]
    assert [text.get_fontweight() for text in axes.texts[:2]] == ["normal", "bold"]


def test_several_queries_tell_the_largest_weight() -> None:
    axes = Figure().add_subplot()
    links(axes, WEIGHTS, ["ich", "du"], ["I", "$x$", "he"], followed=[0, 1], least=0.4)
    assert [text.get_text() for text in axes.texts][2:] == ["I  0.70", "$x$  0.52", "he  0.48"]
    assert len(axes.lines) == 3
