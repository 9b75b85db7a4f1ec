"""What is drawn large says most: of texts read in windows the occurrences that do so in all of them."""

from matplotlib.text import Text

from regard.display.elements.canvas import all_axes
from regard.explain.texts.summary import summarise
from regard.explain.texts.window_texts import unfold_texts_to_windows
from regard.questions.see.picture.large import choices
from regard.questions.see.picture.whole import paint_seen


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
