"""How near a word is to reference words, state by state: the summary's numbers, one curve a word."""

import pytest
import torch

from regard.explain.texts.curves import curves
from regard.explain.texts.summary import summarise

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
