"""Real models that lie beside the checkout, where they do: skipped, with the reason, elsewhere."""

import pytest
import torch
import transformers

import regard
from tests.support.real_models import STORIES

TEXT = "Once upon a time, there was a little girl named Lily. She loved to play outside in the park."


def test_a_causal_model_is_traced_exactly(stories) -> None:
    trace = stories.trace(TEXT)
    eager = transformers.AutoModelForCausalLM.from_pretrained(STORIES, attn_implementation="eager", dtype=torch.float32)
    with torch.no_grad():
        expected = eager(**stories.tokenizer(TEXT, return_tensors="pt"), output_attentions=True)
    assert [weights.shape for weights in trace.attention] == [(8, len(trace.tokens), len(trace.tokens))] * 5
    for weights, theirs in zip(trace.attention, expected.attentions, strict=True):
        torch.testing.assert_close(weights.dense(), theirs[0], atol=5e-6, rtol=0)
    torch.testing.assert_close(trace.logits, expected.logits[0], atol=1e-4, rtol=0)
    assert trace.status.difference < 5e-6
    assert trace.status.embedding_difference <= 1e-6
    assert trace.position_embeddings is None  # rotary, inside attention


def test_what_it_says_next_is_a_story(stories) -> None:
    trace = stories.trace("Once upon a time, there was a little")
    best = stories.tokenizer.decode([int(trace.logits[-1].argmax())]).strip()
    assert best in ("girl", "boy", "g", "b")


def test_words_are_found_in_its_pieces(stories) -> None:
    trace = stories.trace(TEXT)
    for word in ("Lily", "outside", "park", "little girl"):
        (found,) = trace.word(word)
        spelled = "".join(trace.tokens[n].text for n in found.tokens)
        assert spelled.replace(" ", "").replace("▁", "").strip() == word.replace(" ", "")


def test_the_words_contributions_add_up(stories) -> None:
    from regard.explain.causes.contributions import contributions

    for layer in range(5):
        assert contributions(stories.trace(TEXT), "Lily", layer).error < 1e-5


def test_too_long_a_text_is_refused(stories) -> None:
    with pytest.raises(regard.RegardError, match="takes at most 512"):
        stories.trace(TEXT * 40)
