"""A slide or column draws the numbers of the summary in the colours of its texts, and no text lies on another."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Text

from regard import neutral_sentences
from regard.display.canvas import TEXTS, all_axes
from regard.explain.texts.summary import summarise
from regard.explain.wording import number
from regard.questions.see.picture import lines as stage
from regard.questions.see.picture.whole import paint_seen
from regard.questions.see.sentences import findings
from tests.support.pictures import artists, texts_of

LONG = ("Although the committee had already postponed the extraordinarily controversial vote twice, its chairwoman "
        "insisted that the delegates who had travelled so far should decide before the winter recess.")  # fmt: skip


@pytest.fixture(scope="module")
def compared(bank, minilm):
    words = [minilm.trace(word) for word in ("money", "river", "water")]
    return summarise(bank, "bank", references=words, control=minilm.trace(neutral_sentences("bank")))


@pytest.mark.parametrize("shape", ["slide", "column"])
def test_two_texts(compared, bank, shape: str) -> None:
    figure, notes = paint_seen(compared, bank, shape=shape)
    assert notes == []
    lines = stage.choose_lines(compared, bank, None, None)
    fork = stage.movement(compared, lines)
    for n, line in enumerate(lines):
        drawn = {gid for gid in artists(figure) if gid.startswith(f"arc {n} ")}
        assert drawn == {f"arc {n} {k}" for k, weight, *_ in line.arcs if weight > 0.004}
        strong = max((arc for arc in line.arcs if arc[0] not in line.apart), key=lambda arc: arc[1])
        told = artists(figure)[f"weight {n} {strong[0]}"]
        assert (told.get_text(), told.get_color()) == (number(strong[1]), TEXTS[n])
        np.testing.assert_allclose(artists(figure)[f"curve {n}"].get_ydata(), fork.curves[n])
        if shape == "slide":
            np.testing.assert_allclose(artists(figure)[f"heads {n}"].get_array(), line.cells)
    shown = texts_of(figure)
    for each in compared.references:
        assert any(said.endswith(number(each.last_hidden_state)) for said in shown)
    title = findings(compared)[0].replace(" ", "")
    assert (title in "".join(shown)) == (shape == "slide")
    assert not {"▲ 0.00", "nan"} & set(shown)


def test_sizes(compared, bank, minilm) -> None:
    for summary, traces in ((compared, bank), (summarise(bank), bank)):
        assert paint_seen(summary, traces)[0].get_size_inches().tolist() == pytest.approx([13 + 1 / 3, 7.5])
    wide, high = paint_seen(compared, bank, shape="column")[0].get_size_inches()
    assert wide * 25.4 == pytest.approx(85, abs=0.1)
    assert high < 6


@pytest.mark.parametrize("shape", ["slide", "column"])
@pytest.mark.parametrize("texts", [
    ["We sat on the bank.", "A bank."], [LONG.replace("vote", "bank"), "Antidisestablishmentarianism's bank"], [LONG],
    ["bank"], [LONG * 3], ["bank by bank by bank"],
])  # fmt: skip
def test_no_text_lies_on_another_or_outside(texts: list[str], shape: str, minilm) -> None:
    traces = minilm.trace(texts)
    figure, _ = paint_seen(summarise(traces, "bank" if "bank" in texts[0] else None), traces, shape=shape)
    figure.draw_without_rendering()
    beyond = {label for axes in all_axes(figure) for axis in (axes.xaxis, axes.yaxis) for tick in axis.get_major_ticks()
              for label in (tick.label1, tick.label2)
              if not min(axis.get_view_interval()) <= tick.get_loc() <= max(axis.get_view_interval())}  # fmt: skip
    boxes = [(text.get_text(), Text.get_window_extent(text).padded(-1.5)) for text in figure.findobj(Text)
             if text.get_text() and text.get_visible() and not text.get_rotation() and text not in beyond]  # fmt: skip
    page = figure.bbox.padded(2)
    assert [said for said, box in boxes if not page.contains(box.x0, box.y0) or not page.contains(box.x1, box.y1)] == []
    on = [(a, b) for (a, one), (b, other) in combinations(boxes, 2)
          if one.x1 > one.x0 and other.x1 > other.x0 and one.overlaps(other)]  # fmt: skip
    assert on == []


def test_deep_models_have_their_layers_across(minilm) -> None:
    trace = minilm.trace("a man on a river bank")
    (line,) = stage.choose_lines(summarise([trace]), [trace], None, None)
    from dataclasses import replace

    from matplotlib.figure import Figure

    from regard.display.pen import SLIDE, Pen
    from regard.questions.see.picture.stage import ON_SLIDE, Stage

    deep = replace(line, layers=[*range(30)], cells=[[0.5] * 9] * 30, head=(0, 1), arcs=[])
    figure = Figure()
    Stage(summarise([trace]), [deep], Pen(figure, *SLIDE), ON_SLIDE)._draw_grid(0, 24, 338, 300, 172)
    assert artists(figure)["heads 0"].get_array().shape == (9, 30)
    assert [axes.get_ylabel() for axes in figure.axes[1:]] == ["head"]


def test_empty_is_one_sentence(minilm) -> None:
    trace = minilm.trace("a bank", layers=[])
    figure, _ = paint_seen(summarise([trace]), [trace])
    assert texts_of(figure) == ["No layer of the trace has attention between the tokens of the text."]
    assert not figure.axes
