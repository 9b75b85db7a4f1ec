"""SmolLM2-135M, causal, with grouped heads, of a quantised GGUF file: where REGARD_SMOLLM2 names its folder."""

import pytest
import torch

from regard.explain.texts.summary import summarise
from regard.model_files.stored_weight import StoredWeight
from tests.support import RIVER
from tests.support.real_models import SMOLLM2

TEXT = (
    "The bank of the river was steep. A man who had taken money from the bank in the village sat down on it, counted "
    "the money twice, and began to fish."
)


@pytest.fixture(scope="module")
def trace(smollm2):
    return smollm2.trace(TEXT)


@pytest.fixture(scope="module")
def eager(smollm2):
    """The same weights with the family's own attention, every matrix written out."""
    model = smollm2.model
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        with torch.no_grad():
            found = model(
                **smollm2.tokenizer(TEXT, return_tensors="pt"), output_attentions=True, output_hidden_states=True
            )
    finally:
        model.set_attn_implementation(before)
    return found


def test_its_status_says_that_it_was_quantised(trace) -> None:
    (note,) = trace.status.notes
    assert "GGUF: 210 Q4_1, 61 F32, 1 Q8_0" in note
    assert trace.status.dtype == "float32"
    assert trace.status.difference < 5e-6
    assert trace.status.rows_compared == 4 * 30


def test_its_weights_stay_quantised(smollm2) -> None:
    (file,) = SMOLLM2.glob("*.gguf")
    held = {each.data_ptr(): each.untyped_storage().nbytes() for each in smollm2.model.parameters()}
    assert sum(isinstance(each, StoredWeight) for each in smollm2.model.parameters()) == 211
    assert sum(held.values()) <= file.stat().st_size


def test_weights_of_its_grouped_heads_are_those_of_eager(trace, eager) -> None:
    length = len(trace.tokens)
    assert len(trace.attention) == len(eager.attentions) == 30
    for weights, value, theirs in zip(trace.attention, trace.values, eager.attentions, strict=True):
        assert weights.shape == (9, length, length)
        assert value.shape == (3, length, 64)  # three query heads share one of keys and values
        for row in (0, 7, length - 1):
            torch.testing.assert_close(weights[:, row], theirs[0, :, row], atol=1e-5, rtol=0)


def test_states_and_logits_are_those_of_eager(trace, eager) -> None:
    largest = float(eager.logits.abs().max())
    torch.testing.assert_close(trace.logits, eager.logits[0], atol=1e-5 * largest, rtol=0)
    for state, theirs in zip(trace.hidden_states[:-1], eager.hidden_states[:-1], strict=True):
        torch.testing.assert_close(state, theirs[0], atol=1e-5 * float(theirs.abs().max()), rtol=0)


def test_it_looks_back_alone(trace) -> None:
    for n in (0, 14, 29):
        weights = trace.attention[n].dense()
        assert float(weights.triu(1).abs().max()) == 0
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]), atol=1e-5, rtol=0)


def test_the_contributions_to_a_word_add_up_in_every_layer(trace) -> None:
    from regard.explain.causes.contributions import contributions

    second = trace.word("bank")[1]
    for layer in range(30):
        found = contributions(trace, second, layer)
        assert found.norms.shape == (9, len(trace.tokens))
        assert found.error < 1e-5
        assert not found.norms[:, second.tokens[-1] + 1 :].any()  # nothing comes from what stands behind


def test_it_knows_what_comes_next(smollm2) -> None:
    trace = smollm2.trace("The capital of France is")
    assert smollm2.tokenizer.decode([int(trace.logits[-1].argmax())]) == " Paris"


def test_two_texts_in_a_batch_are_each_as_alone(smollm2) -> None:
    short, long = smollm2.trace([RIVER, TEXT])
    alone = smollm2.trace(RIVER)
    assert len(short.tokens) < len(long.tokens)
    torch.testing.assert_close(short.logits, alone.logits, atol=1e-3, rtol=0)
    for n in (0, 29):
        torch.testing.assert_close(short.attention[n].dense(), alone.attention[n].dense(), atol=1e-5, rtol=0)


def test_it_writes_and_is_traced_while_it_does(smollm2) -> None:
    written = smollm2.generate("The capital of France is", max_new_tokens=3)
    assert written.text.startswith("The capital of France is Paris")
    whole = smollm2.trace(ids=list(written.ids[: len(written.trace.tokens)]))
    assert len(written.trace.tokens) == len(whole.tokens)
    for n in (0, 29):
        torch.testing.assert_close(written.trace.attention[n].dense(), whole.attention[n].dense(), atol=1e-5, rtol=0)


def test_massive_activations_are_named(smollm2) -> None:
    """166 times the median length, of the first token: of a word there, and of one that stands alone."""
    texts = smollm2.trace(["Anna sat down on the river bank.", "Anna took the money to the bank."])
    assert summarise(texts, "bank").massive == []
    first = summarise(texts, "Anna").massive
    assert [(each.kind, each.name, each.of) for each in first] == [("word", "Anna", "1"), ("word", "Anna", "2")]
    assert round(first[0].times) == 166
    alone = summarise(texts, "bank", references=[smollm2.trace("money")]).massive
    assert [(each.kind, each.name) for each in alone] == [("reference", "money")]
