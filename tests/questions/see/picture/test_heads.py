"""The rows that are drawn are the trace's, of the layer and heads that the title names."""

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.text import Text

from regard.display.elements.canvas import all_axes
from regard.explain.texts.summary import summarise
from regard.explain.texts.window_texts import unfold_texts_to_windows
from regard.explain.weights.specific_weights import specific_weights
from regard.questions.see.picture.heads import (
    ACROSS,
    SHOWN,
    WordRows,
    choices,
    paint_grid,
    stacked_heads_of_layers,
    strip_rows,
)
from regard.questions.see.picture.whole import paint_seen
from regard.trace.word_rows import gives
from tests.support.pictures import drawn_weights, framed


@pytest.fixture(scope="module")
def rows(bank):
    summary = summarise(bank, "bank")
    (word,) = summary.occurrences[:1]
    ((best,),) = specific_weights(bank[0], [word.tokens], layers=[2])
    return WordRows(summary, bank[0], word, best)


def test_the_large_rows_are_the_heads_and_their_mean(rows, bank) -> None:
    figure = Figure()
    rows.large(figure, axes := figure.add_subplot(), 2, None)
    given = gives(bank[0].attention[2], rows.occurrence.as_word()).double().numpy()
    np.testing.assert_array_equal(drawn_weights(axes), np.concatenate([given.mean(0, keepdims=True), given]))
    assert [label.get_text() for label in axes.get_yticklabels()] == ["mean", *map(str, range(12))]
    assert [label.get_text() for label in axes.get_xticklabels()] == [token.text for token in bank[0].tokens]
    best = rows.chosen
    assert framed(axes) == [(best.head + 1, best.key)]
    assert "“bank” (1) in layer 2, by head" in axes.get_title()


def test_one_head_alone(rows, bank) -> None:
    figure = Figure()
    rows.large(figure, axes := figure.add_subplot(), 2, 5)
    given = gives(bank[0].attention[2], rows.occurrence.as_word()).double().numpy()
    np.testing.assert_array_equal(drawn_weights(axes), given[5:6])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["5"]


def test_every_layer_is_drawn_small(rows, bank) -> None:
    for paint in (lambda figure, place: rows.strip(figure, place, 0, 2), lambda f, p: rows.grid(f, p, 2)):
        figure = Figure()
        paint(figure, figure.add_gridspec(1, 1)[0, 0])
        assert [axes.get_title() for axes in all_axes(figure)] == [
            f"layer {n}" + (": large" if n == 2 else "") for n in range(6)
        ]
        for n, axes in enumerate(all_axes(figure)):
            given = gives(bank[0].attention[n], rows.occurrence.as_word()).double().numpy()
            np.testing.assert_array_equal(drawn_weights(axes), given)
    assert len(strip_rows(rows, 2)) == 1
    assert ACROSS == 12


def test_of_a_long_text_the_tokens_that_get_most(minilm) -> None:
    trace = minilm.trace("the river bank " + "and the old man at sea " * 12)
    summary = summarise([trace], "bank")
    rows = WordRows(summary, trace, summary.occurrences[0], None)
    figure = Figure()
    rows.large(figure, axes := figure.add_subplot(), 1, None)
    given = gives(trace.attention[1], rows.occurrence.as_word()).double().numpy()
    chosen = sorted(sorted(range(len(trace.tokens)), key=lambda n: -given.max(0)[n])[:SHOWN])
    np.testing.assert_array_equal(drawn_weights(axes)[1:], given[:, chosen])
    share = given[:, chosen].sum(1).mean()
    assert f"the {SHOWN} of {len(trace.tokens)} tokens" in axes.get_title()
    assert f"({share:.0%} of all attention)" in axes.get_title()
    assert framed(axes) == []


def test_each_heads_matrix_is_in_its_place(bank) -> None:
    trace, axes = bank[0], Figure().add_subplot()
    layers = stacked_heads_of_layers(trace)
    paint_grid(axes, layers, [n for n, token in enumerate(trace.tokens) if not token.special], (3, 7))
    size = len(trace.tokens)
    gap = round(0.12 * size)
    drawn = drawn_weights(axes)
    for n, weights in enumerate(trace.attention):
        for h in range(12):
            part = drawn[n * (size + gap) :, h * (size + gap) :][:size, :size]
            np.testing.assert_array_equal(part, weights[h].double().numpy())
    assert np.isnan(drawn).sum() == drawn.size - 6 * 12 * size * size
    assert framed(axes) == [(3 * (size + gap), 7 * (size + gap))]
    assert [text.get_text() for text in axes.get_yticklabels()] == list("012345")
    assert torch.tensor(axes.get_xticks()).diff().unique().tolist() == [size + gap]


def test_of_windows_the_occurrences_that_say_most_are_drawn_and_the_others_grey(minilm) -> None:
    long = minilm.trace("a man on a river bank, " * 9 + "money in a bank, " * 5, window=30)
    unfolded = unfold_texts_to_windows([long], "bank")
    summary, traces = summarise(unfolded.traces, "bank", unfolded=unfolded), unfolded.traces
    labels = [o.label for o in summary.occurrences]
    assert len(labels) == 14
    chosen = choices(summary, traces, None, None)
    told = [best.divergence for each in chosen for best in each.best]
    most = sorted(labels, key=lambda label: -told[labels.index(label)])[:8]
    figure, _ = paint_seen(summary, traces)
    titles = " ".join(axes.get_title() for axes in all_axes(figure))
    for label in labels:
        assert (f"Attention from “bank” ({label}) in layer" in titles) == (label in most)
    said = [text.get_text() for text in figure.findobj(Text)]
    assert "8 of 14 occurrences are drawn large, those whose attention says most about them" in said
    words = " ".join(" ".join(said).split())
    assert "Cosine between the “bank” vectors, by layer (12 of 91 pairs)" in words
    assert summary.movement.states == []  # no plane has 14 paths right: none is drawn, and a line says so
    assert "Only the curves are drawn." in words
