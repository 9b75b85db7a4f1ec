"""Every number of a word's tables is the summary's."""

from regard.questions.see.answer import seen
from regard.questions.see.word_panels import VALUES, attends, cosines, learned, states, updates


def test_the_numbers(bank) -> None:
    summary = seen(bank, "bank").summary
    first, pair = summary.occurrences[0], summary.pairs[0]
    (alike,) = cosines(summary, "text")
    assert [row[1] for row in alike.rows] == [pair.learned, *pair.hidden_states]
    rows = states(summary, "text").rows
    assert len(rows) == len(first.hidden_states) * len(summary.occurrences)
    assert rows[0][2] == " ".join(f"{each:z.4f}" for each in first.hidden_states[0][:VALUES]) + " …"
    assert abs(rows[0][3] ** 2 - sum(x * x for x in first.hidden_states[0])) < 1e-6
    assert [row[0] for row in learned(summary, "text").rows] == [each.label for each in summary.occurrences]
    (by_layer,) = attends(summary, first, "text")
    for row, own in zip(by_layer.rows, first.attends, strict=True):
        assert row[1] == own.special
        assert [value for _, value in row[2].parts[row[2].apart :]] == [share.weight for share in own.top]


def test_shares_of_a_step_sum_to_one(bank) -> None:
    summary = seen(bank, "bank").summary
    panel = updates(summary.layer_updates[0], summary, "text", None)
    for row, step in zip(panel.rows, summary.layer_updates[0].updates, strict=True):
        assert row[1] == step.length
        assert abs(row[2] + row[3] - 1) < 1e-5
        assert [value for _, value in row[4].parts] == [each.share for each in step.attention.top]
