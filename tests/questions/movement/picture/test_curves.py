"""The curves of the picture are the summary's, on one scale, each with its name at its end."""

from itertools import pairwise

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from regard.display.elements.canvas import all_axes, stack_rows_in_figure
from regard.explain.texts.curves import curves
from regard.explain.texts.summary import summarise
from regard.questions.movement.picture.curves import has_movement_of_pairs, name_ends, named, paint_pairs, row

SENTENCES = [f"{begin} the bank{end}" for begin in ("They saw", "We spoke of", "It was", "I know")
             for end in (".", " today.", ", he said.")]  # fmt: skip


@pytest.fixture(scope="module")
def summary(bank, minilm):
    control = minilm.trace(SENTENCES, logits=False, attention_outputs=False)
    return summarise(bank, "bank", references=minilm.trace(["river", "money"]), control=control)


def test_each_line_and_range_is_the_summarys(summary) -> None:
    figure = stack_rows_in_figure([row(summary)], 13.0)
    axes = all_axes(figure)
    assert [each.get_title() for each in axes] == ["river", "money"]
    assert axes[0].get_ylim() == axes[1].get_ylim()
    for panel, curve in zip(axes, curves(summary), strict=True):
        lines = {line.get_gid(): list(line.get_ydata()) for line in panel.lines}
        assert lines == {
            f"neutral {curve.word}": curve.neutral.mean,
            f"curve 1 {curve.word}": curve.paths[0],
            f"curve 2 {curve.word}": curve.paths[1],
        }
        dotted = next(line for line in panel.lines if line.get_gid().startswith("neutral"))
        assert dotted.get_linestyle() == ":"
        (band,) = panel.collections
        heights = band.get_paths()[0].vertices[:, 1]
        assert np.isin(np.array([*curve.neutral.low, *curve.neutral.high]), heights).all()
        ends = sorted([(curve.paths[0][-1], "1"), (curve.paths[1][-1], "2"), (curve.neutral.mean[-1], "neutral")])
        named = sorted(panel.texts, key=lambda text: text.xyann[1])  # as high as the lines end, one above the other
        assert [text.get_text() for text in named] == [f"{name} {value:.2f}" for value, name in ends]
    (part,) = figure.subfigs
    assert "dotted: its mean in 12 neutral sentences" in part.get_suptitle()
    assert [text.get_text()[:2] for text in part.legends[0].texts] == ["1 ", "2 "]


def test_without_neutral_sentences_there_is_no_range(bank, minilm) -> None:
    plain = summarise(bank, "bank", references=[minilm.trace("river")])
    (panel,) = all_axes(stack_rows_in_figure([row(plain)], 13.0))
    assert [line.get_gid() for line in panel.lines] == ["curve 1 river", "curve 2 river"]
    assert len(panel.collections) == 0
    (panel,) = all_axes(stack_rows_in_figure([row(summarise(bank, "bank"))], 13.0))
    assert [line.get_gid() for line in panel.lines] == [f"curve {n} itself as it enters layer 0" for n in "12"]


def test_a_line_for_each_two_occurrences(summary, minilm) -> None:
    axes = Figure().add_subplot()
    paint_pairs(axes, summary, named(summary))
    (line,) = axes.lines
    assert list(line.get_ydata()) == summary.pairs[0].hidden_states
    three = summarise([minilm.trace("The bank near a bank is a bank.")], "bank")
    axes = Figure().add_subplot()
    paint_pairs(axes, three, named(three))
    assert {line.get_gid(): list(line.get_ydata()) for line in axes.lines} == {
        f"pair {pair.a} {pair.b}": pair.hidden_states for pair in three.pairs
    }


def test_there_are_pairs_of_two_occurrences_alone(summary, bank) -> None:
    assert has_movement_of_pairs(summary)
    assert not has_movement_of_pairs(summarise(bank[:1], "bank"))


def test_names_at_the_ends_of_lines_do_not_lie_over_each_other_in_a_low_panel() -> None:
    figure = Figure((6, 1.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set(xlim=(0, 7), ylim=(0, 1), title="river", xlabel="layer")
    name_ends(axes, [(0.50, "red", "2 0.50"), (0.48, "grey", "neutral 0.48"), (0.1, "blue", "1 0.10")], 5, 0.2)
    figure.draw_without_rendering()
    boxes = sorted((each.get_window_extent() for each in axes.texts), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1 for below, above in pairwise(boxes))
