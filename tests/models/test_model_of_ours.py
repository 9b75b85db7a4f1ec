"""Traces of our own transformers, against the definition of attention."""

from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.attention import reference
from regard.explain.causes.contributions import contributions
from tests.support.own_models import KINDS, TARGETS, TEXTS, opened, pair


@pytest.mark.parametrize("kind", KINDS)
def test_a_trace_is_the_models_pass_with_exact_weights(kind: str) -> None:
    model = opened(kind)
    traces = model.trace(TEXTS)
    for trace, text in zip(traces, TEXTS, strict=True):
        ids = torch.tensor([[token.id for token in trace.tokens]])
        with torch.no_grad(), regard.record(keep=("value", "output")) as calls:
            own = model.model(ids)
        torch.testing.assert_close(trace.last_hidden_state, own.last_hidden_state[0], rtol=0, atol=1e-5)
        assert (trace.logits is None) == (kind == "bert")
        if trace.logits is not None:
            torch.testing.assert_close(trace.logits, own.logits[0], rtol=0, atol=1e-5)
        causal = model.model.config.kind == "decoder"
        for weights, value, call in zip(trace.attention, trace.values, calls.values(), strict=True):
            query, key = call.weights.query, call.weights.key
            bias = call.weights.rule.bias
            exact = reference.attention(query, key, call.value, causal=causal, bias=bias)
            torch.testing.assert_close(weights.dense().double(), exact.weights[0], rtol=0, atol=1e-5)
            torch.testing.assert_close(call.output.double(), exact.output, rtol=0, atol=1e-5)
            torch.testing.assert_close(value, call.value[0], rtol=0, atol=1e-5)
        assert len(trace.hidden_states) == 3
        assert 0 <= trace.status.difference < 1e-5
        assert trace.status.rows_compared > 0
        assert trace.status.notes == ()
        single = model.trace(text)
        torch.testing.assert_close(single.last_hidden_state, trace.last_hidden_state, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_add_up(kind: str) -> None:
    """The embeddings' parts to what enters, and each block's contributions to what leaves it."""
    model = opened(kind)
    trace, config = model.trace(TEXTS[0]), model.model.config
    ids = [token.id for token in trace.tokens]
    scale = config.d_model**0.5 if config.scale_embeddings else 1.0
    expected = scale * model.model.embedding.weight[ids].detach()
    torch.testing.assert_close(trace.token_embeddings, expected, rtol=0, atol=1e-5)
    assert (trace.position_embeddings is None) == (config.positions not in ("learned", "sinusoidal"))
    assert (trace.segment is None) == (config.segments == 0)
    assert trace.status.embedding_difference < 1e-5
    if config.positions == "sinusoidal":
        sines = regard.nn.positions.sinusoidal(len(ids), 12)
        torch.testing.assert_close(trace.position_embeddings, sines, rtol=0, atol=1e-5)
    if not config.norm_embeddings:
        assert torch.equal(trace.input, trace.hidden_states[0])
    for layer in range(2):
        found = contributions(trace, "bank", layer)
        assert found.error < 1e-5
        assert float(found.shares.sum()) + found.residual_share + found.bias_share == pytest.approx(1, abs=1e-5)


def test_a_pair_is_traced_with_its_crossing_attention() -> None:
    model = pair()
    both = model.trace(TEXTS, target=TARGETS)
    for each, text, target in zip(both, TEXTS, TARGETS, strict=True):
        source, written = (model.tokenizer(t)["input_ids"] for t in (text, target))
        read = [model.tokenizer.bos_token_id, *written[:-1]]
        assert [t.id for t in each.encoder.tokens] == source
        assert [t.id for t in each.decoder.tokens] == read
        with torch.no_grad():
            own = model.model(torch.tensor([source]), torch.tensor([read]))
        torch.testing.assert_close(each.decoder.logits, own.logits[0], rtol=0, atol=1e-5)
        torch.testing.assert_close(each.encoder.last_hidden_state, own.encoder_last_hidden_state[0], rtol=0, atol=1e-5)
        assert [m.shape for m in each.decoder.cross] == [(3, len(read), len(source))] * 2
        assert [m.shape for m in each.decoder.attention] == [(3, len(read), len(read))] * 2
        assert each.status.difference < 1e-5
        assert each.encoder.status.embedding_difference < 1e-5
        assert each.decoder.status.embedding_difference < 1e-5
        assert contributions(each.decoder, 1, 1, part="cross").error < 1e-5


def test_cuts_are_as_if_it_were_not_there() -> None:
    model = opened("gpt")
    cut = model.trace(TEXTS[0], interventions=[regard.ablate(regard.head(1, 2))])
    with torch.no_grad():
        model.model.decoder[1].attention.output.weight[:, 8:] = 0  # the third head's columns
    torch.testing.assert_close(cut.last_hidden_state, model.trace(TEXTS[0]).last_hidden_state, rtol=0, atol=1e-5)
    edge = model.trace(TEXTS[0], interventions=[regard.ablate(regard.edge("bank", "river"))])
    assert not edge.attention[0][:, 7, 6].any()


def test_tracing_leaves_the_model_as_it_was() -> None:
    model = opened("gpt")
    model.model.train()
    hooks = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.model.modules())
    model.trace(TEXTS[0])
    assert model.model.training
    assert hooks == sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.model.modules())


def test_models_of_transformers_are_not_saved_here(minilm: Any, tmp_path: Path) -> None:
    with pytest.raises(regard.RegardError, match=r"save: all-MiniLM-L6-v2 is a BertModel, .*save_pretrained"):
        minilm.save(tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
