"""The bars are the probabilities of the likeliest tokens, the lens those of every layer."""

import numpy as np
import pytest

import regard
from regard.explain.texts.summary import summarise
from regard.questions.see.picture.whole import paint
from regard.views.terminal.layout import spelled
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
    figure = paint(summary, [trace])
    bars = axes_with(figure, "likeliest tokens")
    assert len(bars) == 1 < len(summary.predictions)  # nothing comes after the end token
    for axes, prediction in zip(bars, summary.predictions[:1], strict=True):
        assert [bar.get_width() for bar in axes.patches] == [each.probability for each in prediction.candidates]
        assert [label.get_text() for label in axes.get_yticklabels()] == [
            spelled(each.text, 16) for each in prediction.candidates
        ]
    lenses = axes_with(figure, "what each layer would say")
    assert len(lenses) == len(summary.logit_lenses) >= 1
    for axes, lens in zip(lenses, summary.logit_lenses, strict=True):
        expected = [[each.probability for each in layer.candidates] for layer in lens.layers[::-1]]
        np.testing.assert_array_equal(axes.images[0].get_array(), expected)
        assert [label.get_text() for label in axes.get_yticklabels()] == ["after 1", "after 0", "enters"]
        bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
        assert set(bold) <= {spelled(lens.final.text, 10)}
        assert "as dark as likely" in axes.get_xlabel()
