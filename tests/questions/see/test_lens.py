"""The panels of the logit lens have the numbers of the lens: those of `regard see --logit-lens`."""

import numpy as np
import pytest
from matplotlib.container import BarContainer

import regard
from regard.display.canvas import all_axes
from regard.display.panels import Heat, Table
from regard.explain.texts.summary import summarise
from regard.explain.wording import fixed, state_name
from regard.questions.see.panels import lens_table
from regard.questions.see.picture.whole import lens_cells, paint_seen
from regard.text.quoting import display_text
from tests.support import make_tiny
from tests.support.pictures import axes_with


@pytest.fixture(scope="module")
def writer(tmp_path_factory, minilm):
    import transformers

    folder = tmp_path_factory.mktemp("writer")
    make_tiny(folder, minilm, "llama")
    config = transformers.AutoConfig.from_pretrained(folder)
    transformers.AutoModelForCausalLM.from_config(config).eval().save_pretrained(folder)
    return regard.load(folder)


def test_bars_and_lens(writer) -> None:
    trace = writer.trace("a man on a river bank")
    summary = summarise([trace], "man", top=4, lens_of=writer)
    figure, _ = paint_seen(summary, [trace])
    bars = [axes for axes in all_axes(figure) if any(isinstance(each, BarContainer) for each in axes.containers)]
    assert len(bars) == 1 < len(summary.predictions)  # nothing comes after the end token
    for axes, prediction in zip(bars, summary.predictions[:1], strict=True):
        assert [bar.get_width() for bar in axes.patches] == [each.probability for each in prediction.candidates]
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            display_text(each.text, 16) for each in prediction.candidates
        ]
    lenses = axes_with(figure, ": predictions of each layer")
    assert len(lenses) == len(summary.logit_lenses) >= 1
    for axes, own in zip(lenses, summary.logit_lenses, strict=True):
        expected = [[each.probability for each in layer.candidates] for layer in own.layers]
        np.testing.assert_array_equal(axes.images[0].get_array(), expected)
        assert axes.get_ylim()[0] < axes.get_ylim()[1]  # the last state is on top
        names = [label.get_text() for label in axes.get_yticklabels()]
        assert names == [state_name(n) for n in range(3)] == ["enters layer 0", "after layer 0", "after layer 1"]
        assert [text.get_text() for text in axes.texts[:-1]] == [  # the last is how to read it
            display_text(each.text, 10) for layer in own.layers for each in layer.candidates
        ]
        bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
        found = [each for layer in own.layers for each in layer.candidates if each.id == own.final.id]
        assert bold == [display_text(each.text, 10) for each in found]
        assert "darker is more likely" in axes.texts[-1].get_text()


def test_every_place_has_its_table_and_its_cells(writer) -> None:
    summary = summarise([writer.trace("a man on a river bank")], "man", top=4, lens_of=writer)
    panels = [make(each, summary, "text") for each in summary.logit_lenses for make in (lens_table, lens_cells)]
    assert len({panel.name for panel in panels}) == len(panels) == 2 * len(summary.logit_lenses)
    rows, grid = panels[:2]
    assert isinstance(rows, Table)
    assert isinstance(grid, Heat)
    first = summary.logit_lenses[0]
    assert [row[2] for row in rows.rows] == [str(layer.rank) for layer in first.layers]
    assert "“man” in text 1" in rows.title
    assert grid.said is not None
    assert grid.said[0][0].endswith(fixed(first.layers[0].candidates[0].probability, 3))
