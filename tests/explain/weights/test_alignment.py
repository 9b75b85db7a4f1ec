import pytest
import torch

import regard
from regard.explain.texts.summary import summarise
from regard.explain.weights.alignment import agreements, align, choose, cross_attention_rows, from_source, from_target
from regard.questions.see.answer import seen

SOURCE, TARGET = "the man on the river bank", "un homme sur la rive"


@pytest.fixture(scope="module")
def pair(tiny_pair):
    return tiny_pair.trace(SOURCE, target=TARGET)


def test_the_layers_that_align_what_is_written_and_what_is_read_are_found() -> None:
    """Layer 2 looks at what it writes, layer 0 at what it has read; layer 1 at everything, layer 3 at one place."""
    comes_from = [0, 3, 1, 4, 2]  # the source token of target tokens 1 to 5
    weights = torch.zeros(4, 6, 7)
    for token, source in enumerate(comes_from, 1):
        weights[2, token - 1, source] = 0.9
        weights[0, token, source] = 0.4
    weights[1] = 1 / 7
    weights[3, :, 5] = 1
    table = agreements(weights, [1, 2, 3, 4, 5])
    assert divmod(int(table.argmax()), 4) == (2, 0)
    assert float(table[2, 0]) == pytest.approx(1)  # the same direction for each, another for all others
    assert float(table[1, 1]) == pytest.approx(0, abs=1e-6)
    assert float(table[3, 3]) == pytest.approx(0, abs=1e-6)
    assert float(table[0, 2]) < 0  # the wrong way round: one token off


def test_one_token_alone_agrees_with_nothing() -> None:
    assert agreements(torch.rand(2, 2, 3), [1]).tolist() == [[0, 0], [0, 0]]


def test_rows_are_the_mean_of_heads_of_the_models_own_weights(pair) -> None:
    found = align(pair, layers=(2, 1), top=2)
    own = torch.stack([weights.dense() for weights in pair.decoder.cross])  # (3, H, T, S)
    torch.testing.assert_close(torch.tensor(found.weights), own.mean(1))
    assert [each.text for each in found.tokens] == ["</s>", "<s>", "un", "homme", "sur", "la", "rive"]
    assert found.tokens[0].written is None
    four = found.tokens[4]
    torch.testing.assert_close(torch.tensor(four.written.weights), own[2, :, 3].mean(0))
    torch.testing.assert_close(torch.tensor(four.read.weights), own[1, :, 4].mean(0))
    assert (four.written.layer, four.read.layer, len(four.read.top)) == (2, 1, 2)
    one = align(pair, layers=(0, 0), head=2)
    torch.testing.assert_close(torch.tensor(one.tokens[3].read.weights), own[0, 2, 3])


def test_the_layers_are_chosen_over_all_texts(pair) -> None:
    chosen = choose([pair, pair])
    assert chosen == choose([pair])
    found = align(pair)
    assert (found.written_layer, found.read_layer) == chosen
    own, words = [2, 3, 4, 5, 6], [1, 2, 3, 4, 5, 6]  # neither start, <s> nor </s>
    table = agreements(cross_attention_rows(pair, None)[:, :, words], own)
    assert found.agreement == pytest.approx(float(table.max()))


def test_a_words_other_side(pair) -> None:
    own = torch.stack([weights.dense().mean(0) for weights in pair.decoder.cross])
    (rive,) = pair.decoder.word("rive")
    of = from_target(pair, rive, "1")
    torch.testing.assert_close(torch.tensor(of.written[1].weights), own[1, rive.tokens[0] - 1])
    torch.testing.assert_close(torch.tensor(of.read[1].weights), own[1, rive.tokens[0]])
    (bank,) = pair.encoder.word("river bank")
    to = from_source(pair, bank, "1")
    received = own[2][:, list(bank.tokens)].sum(1)
    torch.testing.assert_close(torch.tensor(to.read[2].weights), received)
    assert to.written[2].weights[0] == 0
    torch.testing.assert_close(torch.tensor(to.written[2].weights[1:]), received[:-1])


def test_a_sight_of_a_pair_has_both_sides(pair) -> None:
    summary = summarise([pair], "bank")
    assert summary.target is not None
    assert [o.word for o in summary.occurrences] == ["bank"]
    assert summary.target.summary.occurrences == []
    assert (len(summary.target.to_words), len(summary.target.of_words)) == (1, 0)
    summary = summarise([pair], "rive", generated=[True])
    assert summary.target.generated == [True]
    assert (len(summary.target.to_words), len(summary.target.of_words)) == (0, 1)
    assert [len(o.attends) for o in summary.target.summary.occurrences] == [3]
    (said,) = summary.target.summary.predictions  # in the place of the word: what comes after "la"
    assert (said.at, said.after, said.occurrence) == ("la", True, "1")
    everything = summarise([pair])
    data = seen([pair]).data()
    assert [len(side["overview"][0]) for side in (data, data["target"]["summary"])] == [8, 7]
    assert [each.at for each in everything.target.summary.predictions] == ["rive"]


def test_a_word_on_neither_side_is_refused(pair) -> None:
    with pytest.raises(regard.RegardError, match="text: word 'rivers' is not in .*; target: word 'rivers' is not in"):
        summarise([pair], "rivers")
    with pytest.raises(regard.RegardError, match="layer 2 is out of range: .* has layers 0 to 1"):
        summarise([pair], layer=2)
