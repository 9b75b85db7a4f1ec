"""The default model, traced: everything against transformers' own eager attention."""

import copy
import math
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import transformers

import regard
from regard.attention.kernels import statistics
from regard.model_files.folder import default_folder
from tests.support import MONEY, RIVER, make_tiny

LONG = "The river runs past the old bank, and nobody fishes there any more. "


@pytest.fixture(scope="module")
def eager():
    return transformers.AutoModel.from_pretrained(
        default_folder(), attn_implementation="eager", dtype=torch.float32
    ).eval()


def own(eager, tokenizer, text: str):
    """What the model itself says of a text, weights and states included."""
    with torch.no_grad():
        return eager(**tokenizer(text, return_tensors="pt"), output_attentions=True, output_hidden_states=True)


@pytest.mark.parametrize("text", [RIVER, "bank", LONG * 20, "Bob's 🙂 café 河"])
def test_weights_and_states_are_the_models_own(minilm, eager, text: str) -> None:
    trace, expected = minilm.trace(text), own(eager, minilm.tokenizer, text)
    assert len(trace.attention) == len(expected.attentions) == 6
    for weights, theirs in zip(trace.attention, expected.attentions, strict=True):
        assert weights.shape == theirs.shape[1:]
        torch.testing.assert_close(weights.dense(), theirs[0], atol=5e-6, rtol=0)
    for state, theirs in zip(trace.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(state, theirs[0], atol=2e-5, rtol=0)
    torch.testing.assert_close(trace.last_hidden_state, expected.last_hidden_state[0], atol=2e-5, rtol=0)
    assert trace.logits is None


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_is_a_model(copied, minilm) -> None:
    made = copied(minilm)
    assert (repr(made), made.notes) == (repr(minilm), minilm.notes)
    assert (made.model is minilm.model) == (copied is copy.copy)
    assert torch.equal(made.trace(RIVER).last_hidden_state, minilm.trace(RIVER).last_hidden_state)


def test_parts_add_up_to_what_enters_the_norm(bank, eager) -> None:
    for trace in bank:
        total = trace.token_embeddings + trace.position_embeddings + trace.segment
        torch.testing.assert_close(total, trace.input, atol=1e-6, rtol=0)
        assert trace.status.embedding_difference <= 1e-6
        table = eager.embeddings.word_embeddings.weight
        assert torch.equal(trace.token_embeddings, table[[t.id for t in trace.tokens]])
        torch.testing.assert_close(eager.embeddings.LayerNorm(trace.input), trace.hidden_states[0], atol=1e-6, rtol=0)


def test_batch_equals_single_and_padded_equals_unpadded(minilm) -> None:
    texts = [RIVER, "bank", LONG * 3, MONEY]
    for batched, text in zip(minilm.trace(texts), texts, strict=True):
        single = minilm(text)  # as minilm.trace(text)
        assert batched.text == text
        assert batched.tokens == single.tokens
        for a, b in zip(batched.hidden_states, single.hidden_states, strict=True):
            torch.testing.assert_close(a, b, atol=1e-5, rtol=0)
        for a, b in zip(batched.attention, single.attention, strict=True):
            assert a.shape == b.shape
            torch.testing.assert_close(a.dense(), b.dense(), atol=1e-5, rtol=0)
        assert batched.status.difference < 5e-6


def test_a_text_of_all_its_positions_is_not_cut_and_one_token_too_many_is_refused(minilm) -> None:
    trace = minilm.trace("bank " * 510)
    assert trace.attention[5].shape == (12, len(trace.tokens), 512)
    with pytest.raises(regard.RegardError, match="text 2 has 513 tokens.* takes at most 512"):
        minilm.trace(["bank", "bank " * 511])


def test_status_says_how_far_to_trust(bank) -> None:
    status = bank[0].status
    assert status.model == "all-MiniLM-L6-v2"
    assert status.kernels
    assert 0 <= status.difference < 5e-6
    assert status.rows_compared > 0
    assert status.seconds > 0


def test_an_attention_that_differs_shows_in_the_status(minilm, monkeypatch) -> None:
    """The comparison is a real one: a wrong eager function is noticed."""
    from transformers.models.bert import modeling_bert

    right = modeling_bert.eager_attention_forward

    def wrong(module, query, key, value, mask, scaling=None, **rest):
        return right(module, query, key, value, mask, scaling=2 * scaling, **rest)

    monkeypatch.setattr(modeling_bert, "eager_attention_forward", wrong)
    assert minilm.trace(RIVER).status.difference > 1e-3


def test_the_models_own_settings_come_back() -> None:
    model = transformers.AutoModel.from_pretrained(default_folder(), attn_implementation="eager").train()
    tokenizer = transformers.AutoTokenizer.from_pretrained(default_folder())
    opened = regard.load(model, tokenizer=tokenizer)
    a = opened.trace(RIVER)
    hooks = sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())
    b = opened.trace(RIVER)
    assert torch.equal(a.last_hidden_state, b.last_hidden_state)  # no dropout while tracing
    assert model.config._attn_implementation == "eager"
    assert model.training
    assert hooks == sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def test_several_threads_trace_at_once(minilm, bank) -> None:
    with ThreadPoolExecutor(4) as pool:
        for trace in pool.map(minilm.trace, [RIVER] * 8):
            torch.testing.assert_close(trace.last_hidden_state, bank[0].last_hidden_state, atol=1e-5, rtol=0)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "electra", "albert", "camembert", "ernie", "llama"])
def test_other_families(minilm, tmp_path, kind: str) -> None:
    """Nothing assumes BERT: tiny random models of other families, against their own eager attention."""
    model = make_tiny(tmp_path, minilm, kind)
    text = "a man on a river bank"
    trace = regard.load(tmp_path, device="cpu").trace([text, "bank"])[0]
    model.set_attn_implementation("eager")
    inputs = minilm.tokenizer(text, return_tensors="pt")
    if kind in ("distilbert", "llama"):
        del inputs["token_type_ids"]
    with torch.no_grad():
        expected = model(**inputs, output_attentions=True, output_hidden_states=True)
    for weights, theirs in zip(trace.attention, expected.attentions, strict=True):
        torch.testing.assert_close(weights.dense(), theirs[0], atol=5e-6, rtol=0)
    last = len(trace.hidden_states) - 1  # transformers shows a decoder's last state after the final norm
    for n, (state, theirs) in enumerate(zip(trace.hidden_states, expected.hidden_states, strict=True)):
        if n < last or kind != "llama":
            torch.testing.assert_close(state, theirs[0], atol=2e-5, rtol=0)
    torch.testing.assert_close(trace.last_hidden_state, expected.last_hidden_state[0], atol=2e-5, rtol=0)
    assert trace.status.embedding_difference <= 1e-6
    assert (trace.position_embeddings is None) == (kind == "llama")


def test_a_language_head_gives_logits(minilm, tmp_path) -> None:
    tiny = make_tiny(tmp_path, minilm)
    head = transformers.BertForMaskedLM(tiny.config).eval()
    head.save_pretrained(tmp_path)
    trace = regard.load(tmp_path, device="cpu").trace("a river bank")
    with torch.no_grad():
        expected = head(**minilm.tokenizer("a river bank", return_tensors="pt")).logits[0]
    torch.testing.assert_close(trace.logits, expected, atol=2e-5, rtol=0)
    assert math.isclose(float((trace.last_hidden_state - trace.hidden_states[-1]).abs().max()), 0)


def test_statistics_come_with_a_trace(minilm, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [RIVER, LONG * 20, "bank"]
    plain, asked = minilm.trace(texts), minilm.trace(texts, statistics=True)
    (alone,) = minilm.trace([LONG * 20], statistics=regard.Statistics(top=2), layers=[3])
    figures = [[weights.statistics() for weights in trace.attention] for trace in plain]
    one = plain[1].attention[3].statistics(top=2)
    monkeypatch.setattr(statistics, "compute", None)  # everything is there
    for trace, right in zip(asked, figures, strict=True):
        for weights, expected in zip(trace.attention, right, strict=True):
            given = weights.statistics()
            for name in ("values", "entropy", "received", "distance", "pooled"):
                torch.testing.assert_close(getattr(given, name), getattr(expected, name), atol=3e-5, rtol=1e-4)
            torch.testing.assert_close(weights.received(), expected.received, atol=3e-5, rtol=1e-4)
    assert alone.status.kernels == ("one-sweep-cpu",)
    torch.testing.assert_close(alone.attention[3].entropy(), one.entropy, atol=3e-5, rtol=1e-4)
    torch.testing.assert_close(alone.last_hidden_state, plain[1].last_hidden_state, atol=2e-5, rtol=0)
