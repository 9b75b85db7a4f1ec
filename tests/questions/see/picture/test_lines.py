"""The stage shows the links and weights that the sentences name, of the occurrences that end furthest apart."""

import numpy as np
import pytest

from regard import neutral_sentences
from regard.explain.texts.highlights import highlights
from regard.explain.texts.summary import summarise
from regard.explain.weights.sinks import sinks
from regard.explain.weights.specific_weights import divergence_maps
from regard.questions.see.picture import lines as stage


def test_two_texts_show_the_rows_of_the_heads_that_the_sentences_name(bank) -> None:
    summary = summarise(bank, "bank")
    shown = stage.choose_lines(summary, bank, None, None)
    for line, own, trace in zip(shown, summary.occurrences, bank, strict=True):
        assert line.head == (own.link.layer, own.link.head)
        row = trace.attention[own.link.layer][own.link.head][own.tokens[0]].tolist()
        assert {k: weight for k, weight, *_ in line.arcs} == {k: w for k, w in enumerate(row) if k not in own.tokens}
        assert line.where() == f"layer {own.link.layer}, head {own.link.head}"
        cells = np.array(line.cells)
        assert divmod(int(cells.argmax()), 12) == line.head  # the darkest is the framed one
        apart = [sink.token for sink in sinks(trace)]
        maps = divergence_maps(trace.tokens, trace.attention, apart, range(6), range(12))
        largest = np.stack([divergence[:, own.tokens[0]].amax(1) for *_, divergence in maps])
        np.testing.assert_allclose(cells, largest / largest.max())


def test_a_word_of_several_tokens_has_the_darkest_cell_where_the_sentence_looks(minilm) -> None:
    traces = minilm.trace(["An unfathomable river flooded the town.", "The price was unfathomable to the bank."])
    summary = summarise(traces, "unfathomable")
    without, line = stage.choose_lines(summary, traces, None, None)
    own = summary.occurrences[1]
    assert len(own.tokens) > 1
    assert divmod(int(np.argmax(line.cells)), 12) == line.head == (own.link.layer, own.link.head)
    assert line.kind == "most unusual link"
    assert summary.occurrences[0].link is None
    assert without.head == (own.link.layer, None)  # the mean of heads, in the layer at which the page opens


def test_one_text_shows_the_links_that_stand_out(minilm) -> None:
    trace = minilm.trace("The animal didn't cross the street because it was too tired.")
    (line,) = stage.choose_lines(summarise([trace]), [trace], None, None)
    first, second = highlights(trace).links[:2]
    assert line.word == "it"
    assert line.head is None
    named = [(link.key, link.weight, link.layer, link.head) for link in (first, second)]
    assert line.arcs[:2] == named
    (asked,) = stage.choose_lines(summarise([trace], "tired", layer=3, head=5), [trace], 3, 5)
    assert (asked.head, asked.asked) == ((3, 5), True)


def test_of_many_occurrences_those_that_end_furthest_apart(minilm) -> None:
    trace = minilm.trace("the bank of the river, a bank of clouds, and a bank with money")
    summary = summarise([trace], "bank", references=[minilm.trace("money"), minilm.trace("river")])
    shown = stage.choose_lines(summary, [trace], None, None)
    last = {frozenset((pair.a, pair.b)): pair.hidden_states[-1] for pair in summary.pairs}
    assert frozenset(line.label for line in shown) == min(last, key=lambda pair: last[pair])
    fork = stage.movement(summary, shown)
    assert (len(fork.curves), len(fork.others)) == (2, 1)


def test_the_fork_is_the_difference_of_two_cosines(bank, minilm) -> None:
    control = minilm.trace(neutral_sentences("bank"))
    summary = summarise(bank, "bank", references=[minilm.trace("money"), minilm.trace("river")], control=control)
    fork = stage.movement(summary, stage.choose_lines(summary, bank, None, None))
    assert set(fork.ends) == {"money", "river"}
    cosine = {(each.word, each.occurrence): each.states for each in summary.references}
    for label, curve in zip("12", fork.curves, strict=True):
        one, other = (cosine[word, label] for word in fork.ends)
        assert curve == pytest.approx([a - b for a, b in zip(one, other, strict=True)])
    assert fork.band == (summary.difference.mean, summary.difference.low, summary.difference.high)
    bare = summarise(bank, "bank")
    assert stage.movement(bare, stage.choose_lines(bare, bank, None, None)).curves == [bare.pairs[0].hidden_states]


def test_a_sentence_is_cut_into_asides_and_the_words_of_each_text(bank) -> None:
    shown = stage.choose_lines(summarise(bank, "bank"), bank, None, None)
    said = "“bank” attends to “river” in text 1 (0.83, layer 0) and to “money” in text 2."
    cut = stage.split_by_colour(said, shown, "bank", {"bank", "river", "money"})
    assert "".join(part for part, *_ in cut) == said
    assert [(part, of) for part, of, _ in cut if of is not None] == [("“river”", 0), ("“money”", 1)]
    assert [part for part, _, aside in cut if aside] == ["(0.83, layer 0)"]


def test_tokens_are_written_as_in_the_text(minilm) -> None:
    trace = minilm.trace("Unbelievable,  he said")
    (line,) = stage.choose_lines(summarise([trace]), [trace], None, None)
    shown = stage.written_tokens(line)
    assert [text for text, _ in shown][0 :: len(shown) - 1] == ["CLS", "SEP"]
    assert "".join(" " * blank + text for text, blank in shown) == "CLS Unbelievable, he said SEP"
    rows = stage.layout(line, len, 14.0)
    assert [row for *_, row in rows] == sorted(row for *_, row in rows)
    assert max(left + wide for left, wide, _ in rows) <= 14
