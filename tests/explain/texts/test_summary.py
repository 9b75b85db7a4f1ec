import pytest
import torch

from regard.explain.texts.summary import attended_by_every_token, curves, summarise
from tests.support import RIVER


def test_what_the_word_attends_to(bank) -> None:
    first = summarise(bank, "bank", top=3).occurrences[0].attends[0]
    assert [(s.text, round(s.weight, 3)) for s in first.top] == [("river", 0.252), ("fishing", 0.116), ("poem", 0.081)]
    assert first.head is None
    assert sum(first.weights) == pytest.approx(1, abs=1e-6)
    assert first.special == pytest.approx(first.weights[0] + first.weights[13], abs=1e-6)


def test_single_heads(bank) -> None:
    one = summarise(bank, "bank", layer=2, head=7).occurrences[0].heads
    assert [(h.layer, h.head) for h in one] == [(2, 7)]
    torch.testing.assert_close(torch.tensor(one[0].weights), bank[0].attention[2][7, 11])
    assert [(h.layer, h.head) for h in summarise(bank, "bank", head=7).occurrences[1].heads] == [
        (n, 7) for n in range(6)
    ]
    assert [(h.layer, h.head) for h in summarise(bank, "bank", layer=5).occurrences[0].heads] == [
        (5, n) for n in range(12)
    ]


def test_repeated_words_have_letters(minilm) -> None:
    summary = summarise(minilm.trace(["the bank by the bank", RIVER]), "bank")
    assert [o.label for o in summary.occurrences] == ["1a", "1b", "2"]
    assert [(p.a, p.b) for p in summary.pairs] == [("1a", "1b"), ("1a", "2"), ("1b", "2")]


def test_words_spelled_by_other_tokens_are_not_equal(minilm) -> None:
    """ "Bank" in a cased tokenizer would be another token; here a plural stands in for it."""
    traces = minilm.trace(["withdrawals", "withdrawals again"])
    (pair,) = summarise(traces, "withdrawals").pairs
    assert pair.token_embeddings_equal is True
    one, other = traces
    object.__setattr__(other, "token_embeddings", other.token_embeddings + 1)
    assert summarise([one, other], "withdrawals").pairs[0].token_embeddings_equal is False


def test_references_before_and_after(bank, minilm) -> None:
    money = minilm.trace("money")
    summary = summarise(bank, "bank", references=[money])
    assert [(r.word, r.occurrence) for r in summary.references] == [("money", "1"), ("money", "2")]
    before = torch.cosine_similarity(bank[0].token_embeddings[11], money.token_embeddings[1], dim=0)
    after = torch.cosine_similarity(bank[1].last_hidden_state[11], money.last_hidden_state[1], dim=0)
    assert summary.references[0].token_embeddings == pytest.approx(float(before), abs=1e-6)
    assert summary.references[1].last_hidden_state == pytest.approx(float(after), abs=1e-6)
    assert summary.references[1].last_hidden_state > summary.references[0].last_hidden_state  # it means money


def test_overview_without_a_word(bank) -> None:
    summary = summarise(bank)
    assert (summary.occurrences, summary.pairs, summary.massive) == ([], [], None)
    overview = attended_by_every_token(bank[0], None, 5, ())
    assert [len(rows) for rows in overview] == [6] * 14
    assert overview[11][0].top[0].text == "river"
    one = attended_by_every_token(bank[0], 3, 5, ())[11][4]
    assert one.head == 3
    best = bank[0].attention[4][3, 11, 1:13].max()
    assert one.top[0].weight == pytest.approx(float(best), abs=1e-6)


SENTENCES = [f"{begin} the bank{end}" for begin in ("They saw", "We spoke of", "It was", "I know")
             for end in (".", " today.", ", he said.")]  # fmt: skip


def test_one_for_each_reference_word_with_the_neutral_sentences(bank, minilm) -> None:
    references = minilm.trace(["river", "money"])
    control = minilm.trace(SENTENCES, logits=False, attention_outputs=False)
    found = curves(summarise(bank, "bank", references=references, control=control))
    assert [each.word for each in found] == ["river", "money"]
    for curve, reference in zip(found, references, strict=True):
        for path, trace in zip(curve.paths, bank, strict=True):
            own = torch.stack([trace.hidden_states[n][11] for n in range(7)])
            beside = torch.stack([reference.hidden_states[n][1] for n in range(7)])
            assert path == pytest.approx(torch.cosine_similarity(own, beside, dim=1).tolist(), abs=1e-5)
        assert curve.neutral is not None
        assert curve.neutral.word == curve.word
    alone = curves(summarise(bank, "bank", references=references))
    assert [each.neutral for each in alone] == [None, None]
    assert [each.paths for each in alone] == [each.paths for each in found]


def test_without_reference_words_the_word_beside_itself_as_it_enters(bank) -> None:
    (curve,) = curves(summarise(bank, "bank"))
    assert (curve.word, curve.neutral) == (None, None)
    for path, trace in zip(curve.paths, bank, strict=True):
        states = torch.stack([trace.hidden_states[n][11] for n in range(7)]).double()
        assert path == pytest.approx(torch.cosine_similarity(states[:1], states, dim=1).tolist(), abs=1e-6)
