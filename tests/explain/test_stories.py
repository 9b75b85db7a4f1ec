"""Explanations of a real causal model that lies beside the checkout, where it does."""

import pytest

import regard
from regard.explain.causes.ablation_effect import effect
from regard.explain.causes.layer_updates import layer_updates

TEXT = "Once upon a time, there was a little girl named Lily."


def test_every_step_adds_up(stories) -> None:
    trace = stories.trace(TEXT)
    for place in range(1, len(trace.tokens)):
        for step in layer_updates(trace, place):
            assert step.error <= 1e-5
            assert step.attention.share + step.feed_forward_share == pytest.approx(1)
            assert step.attention.sources_share == pytest.approx(step.attention.share, abs=1e-4)  # no bias, no norm
            assert all(source.token <= place for source in step.attention.top if source.length)


def test_what_comes_after_a_word_ranks_what_is_behind_it(stories) -> None:
    trace = stories.trace(TEXT)
    (word,) = trace.word("little")
    found = regard.why(stories, trace, word)
    assert found.by == "divergence"
    assert found.tokens[0].divergence > 100 * found.tokens[-1].divergence
    assert len(found.heads) == 40
    best = found.heads[0]
    cut = stories.trace(TEXT, interventions=[regard.ablate(regard.head(best.layer, best.head))])
    again = effect(trace, cut, word)
    assert best.divergence == pytest.approx(again.after_place, abs=1e-9)
    assert again.after_place != pytest.approx(again.next_token, abs=1e-6)  # "little" is not the text's last word
