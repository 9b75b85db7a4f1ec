"""The bars under a text are the weights of the layer that its title names."""

from regard.questions.see.answer import seen
from regard.questions.see.looks import layer_looked_at
from regard.questions.see.text_panels import FULL, texts


def test_bars_are_the_weights(bank) -> None:
    summary = seen(bank, "bank").summary
    place = layer_looked_at(summary)
    layer = summary.occurrences[0].attends[place].layer
    first, second = (panel.title for panel in texts(summary, "text"))
    assert first == f"What “bank” looks at in layer {layer}, mean of heads (a full bar is {FULL:.2f})"
    assert second == ""  # the same is not said twice
    for panel, own in zip(texts(summary, "text"), summary.occurrences, strict=True):
        assert panel.values == own.attends[place].weights
        assert panel.full == FULL
        assert list(panel.marked) == own.tokens
        assert [summary.tokens[own.text][n].special for n in panel.special] == [True] * len(panel.special)


def test_without_a_word_there_are_no_bars(bank) -> None:
    for panel, trace in zip(texts(seen(bank).summary, "text"), bank, strict=True):
        assert set(panel.values) == {None}
        assert panel.title.endswith(f"{len(trace.tokens)} tokens, special ones included")
