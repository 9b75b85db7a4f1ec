"""A row is told with special tokens and the word itself in it; the head that links the word to another is named."""

from dataclasses import replace

import torch

from regard.explain.texts.summary import Summary, summarise
from regard.explain.weights.sinks import Sink
from regard.questions.see.looks import layer_looked_at, link_told, push_told, row_told
from regard.questions.see.sentences import findings


def of_money(bank) -> Summary:
    return summarise(bank[1:], "bank")


def test_a_row_begins_with_what_is_largest_in_it(bank) -> None:
    """[CLS] has 0.23 in the row of which "a", 0.15, was said to be looked at most."""
    assert row_told(summarise(bank, "bank")) == (
        "What “bank” looks at most in layer 0 (mean of its heads), text 1: “river” 0.25, then [CLS] 0.19; "
        "text 2: [CLS] 0.23, then “a” (10) 0.15."
    )


def test_the_head_is_that_of_the_weight_most_beyond_what_others_give(bank) -> None:
    """ "withdrawing" stands four tokens before; "the head before it" gives 0.9 to "a", whatever stands there."""
    assert link_told(of_money(bank)) == (
        "What “bank” singles out most: “withdrawing” 0.39 (others 0.13) in layer 0, head 0."
    )
    dense = torch.stack([bank[1].attention[n].dense() for n in range(6)]).double()  # (layers, heads, 14, 14)
    rows = dense[0, 0]
    distance, key = [rows[q, q - 4] for q in range(4, 14) if q != 11], [rows[q, 7] for q in range(14) if q != 11]
    near = [rows[q, q - 4] for q in (7, 8, 9, 10, 12, 13)]
    others = max(float(torch.stack(each).mean()) for each in (distance, key, near))
    assert f"(others {others:.2f})" in link_told(of_money(bank))
    assert float(dense[:, :, 11, 10].max()) > 0.9  # the token before


def test_the_word_before_counts_where_it_is_what_the_head_looks_for(minilm) -> None:
    """ "river bank": that a neighbour is looked at says little, but not where other neighbours get much less."""
    summary = summarise([minilm.trace("She walked along the river bank at dawn.")], "bank")
    assert link_told(summary).endswith(": “river” 0.83 (others 0.16) in layer 0, head 4.")


def test_the_word_itself_is_in_its_row(minilm) -> None:
    """Over a table with bank 0.07 the sentence went from river to "a" 0.06."""
    summary = summarise([minilm.trace("A man on a river bank.")], "bank")
    row = summary.occurrences[0].attends[layer_looked_at(summary)]
    order = sorted(range(len(row.weights)), key=lambda n: -row.weights[n])[:2]
    for n in order:
        token = summary.tokens[0][n]
        name = "itself" if n in summary.occurrences[0].tokens else token.text if token.special else f"“{token.text}”"
        assert f"{name} {row.weights[n]:.2f}" in row_told(summary)


def test_how_many_tokens_are_named_elsewhere_changes_nothing(bank) -> None:
    """With --top 1 the one that was kept could be the word itself, so that nothing seemed to be looked at."""
    assert findings(summarise(bank, "bank", top=1)) == findings(summarise(bank, "bank", top=20))


def test_where_no_head_does_it_is_said_of_that_text_alone(bank) -> None:
    summary = summarise(bank, "bank")
    first, second = summary.occurrences
    mixed = replace(summary, occurrences=[first, replace(second, link=None)])
    assert link_told(mixed).endswith("; text 2: none.")
    assert link_told(replace(summary, occurrences=[replace(each, link=None) for each in (first, second)])) == ""


def test_sinks_are_named_where_they_are_left_out(bank) -> None:
    summary = summarise([bank[0]], "bank")
    assert "“river”, 20% in layer 0" in push_told(summary)
    assert "sinks" not in link_told(summary) + push_told(summary)
    river = next(n for n, token in enumerate(summary.tokens[0]) if token.text == "river")
    summary = replace(summary, sinks=[[Sink(river, "river", 0.5, 0.9)]])
    assert "What “bank” singles out most (sinks aside)" in link_told(summary)
    assert push_told(summary).startswith("The other word (sinks aside) with the largest share")


def test_of_layers_that_are_held_the_sentence_says_so(bank, tmp_path) -> None:
    import regard

    bank[0].save(tmp_path / "a.safetensors", layers=[3])
    summary = summarise([regard.open(tmp_path / "a.safetensors")], "bank")
    assert summary.layers == list(range(6))
    assert link_told(summary).startswith("What “bank” singles out most in the layers held: ")


def test_a_sink_is_called_so(bank) -> None:
    summary = of_money(bank)
    (own,) = summary.occurrences
    rows = [replace(row, weights=[0.9 if n == 1 else 0.007 for n in range(14)]) for row in own.attends]
    summary = replace(summary, occurrences=[replace(own, attends=rows)], sinks=[[Sink(1, "write", 0.5, 0.9)]])
    assert row_told(summary).endswith(": the sink “write” 0.90.")


def test_a_row_of_faint_weights_names_nothing(bank) -> None:
    summary = of_money(bank)
    (own,) = summary.occurrences
    even = [replace(row, weights=[0.01] * len(row.weights)) for row in own.attends]
    assert row_told(replace(summary, occurrences=[replace(own, attends=even)])).endswith(": no token takes 0.02.")
