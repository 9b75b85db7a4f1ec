"""Some layers and no logits: what is kept equals what a whole trace has, and what is not is refused by name."""

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

import regard
from regard.capture.build_trace import NO_OUTPUTS
from regard.explain.causes.contributions import contributions
from regard.models.model import Model
from tests.support import RIVER
from tests.support.attention_outputs import make_model

SIZES = {"vocab_size": 97, "hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3}
IDS = [5, 17, 31, 8, 44, 90, 2]


def model(kind: str, **changes):
    torch.manual_seed(0)
    sizes = SIZES | {"intermediate_size": 37, "max_position_embeddings": 31} | changes
    made = transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(kind, **sizes))
    return regard.load(made.eval())


def test_some_layers_are_those_of_all(minilm) -> None:
    some, whole = minilm.trace(RIVER, layers=[4, 1]), minilm.trace(RIVER)
    assert some.attention.kept == some.values.kept == some.attention_outputs.kept == (1, 4)
    assert some.hidden_states.kept == (1, 2, 4, 5)
    assert (len(some.attention), len(some.hidden_states)) == (6, 7)
    for n in (1, 4):
        torch.testing.assert_close(some.attention[n].dense(), whole.attention[n].dense(), atol=1e-6, rtol=0)
        torch.testing.assert_close(some.values[n], whole.values[n], atol=1e-6, rtol=0)
        torch.testing.assert_close(
            some.attention_outputs[n].projected, whole.attention_outputs[n].projected, atol=1e-6, rtol=0
        )
        torch.testing.assert_close(some.hidden_states[n], whole.hidden_states[n], atol=1e-6, rtol=0)
        torch.testing.assert_close(some.hidden_states[n + 1], whole.hidden_states[n + 1], atol=1e-6, rtol=0)
    torch.testing.assert_close(some.last_hidden_state, whole.last_hidden_state, atol=1e-6, rtol=0)
    assert "The trace has only layers 1, 4 of 6." in some.status.notes
    with pytest.raises(regard.RegardError, match=r"attention\[3\] was not kept: of 6 this trace holds 1, 4"):
        some.attention[3]
    with pytest.raises(regard.RegardError, match=r"states cannot be walked along, for of 7 it holds 1, 2, 4, 5,"):
        list(some.hidden_states)
    with pytest.raises(IndexError):
        some.attention[6]
    assert some.attention[-2] is some.attention[4]
    assert minilm.trace(RIVER, layers=5).attention.kept == (5,)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "opt", "bert"])
def test_without_logits_nothing_else_changes(kind: str) -> None:
    changes = {"opt": {"ffn_dim": 37, "word_embed_proj_dim": 24}, "bert": {"is_decoder": True}}.get(kind, {})
    opened = model(kind, **changes)
    whole, without = opened.trace(ids=IDS), opened.trace(ids=IDS, logits=False)
    assert whole.logits.shape == (7, 97)
    assert without.logits is None
    assert "Logits were left out." in without.status.notes
    assert torch.equal(without.last_hidden_state, whole.last_hidden_state)
    assert all(torch.equal(a, b) for a, b in zip(without.hidden_states, whole.hidden_states, strict=True))


@pytest.mark.parametrize("layers", [None, [1]])
def test_blocks_are_left_out(layers) -> None:
    opened = model("llama")
    trace, whole = opened.trace(ids=IDS, layers=layers, attention_outputs=False), opened.trace(ids=IDS)
    assert not trace.attention_outputs
    assert NO_OUTPUTS in trace.status.notes
    assert torch.equal(trace.attention[1].dense(), whole.attention[1].dense())
    with pytest.raises(regard.RegardError, match="doesn't contain its output projection"):
        contributions(trace, 2, 1)
    with pytest.raises(regard.RegardError, match="attention_outputs"):
        trace.save("never.safetensors", attention_outputs=True)


HYBRIDS: dict[str, dict[str, Any]] = {
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "mamba_d_state": 4, "mamba_dt_rank": 4,
              "intermediate_size": 40},
    "bamba": {"attn_layer_indices": [1, 3], "mamba_n_heads": 4, "mamba_d_head": 12, "mamba_d_state": 4,
              "mamba_n_groups": 1},
    "qwen3_next": {"layer_types": ["linear_attention", "full_attention"] * 2, "head_dim": 8, "num_experts": 2,
                   "linear_num_value_heads": 2, "linear_num_key_heads": 2, "linear_key_head_dim": 4,
                   "linear_value_head_dim": 4, "num_experts_per_tok": 1, "moe_intermediate_size": 12,
                   "shared_expert_intermediate_size": 12},
    "lfm2": {"layer_types": ["conv", "full_attention"] * 2},
}  # fmt: skip


@pytest.mark.parametrize("kind", HYBRIDS)
def test_a_hybrids_attention_is_walked_along(kind: str) -> None:
    own = make_model(kind, num_hidden_layers=4, num_key_value_heads=1, **HYBRIDS[kind])
    opened = Model(own, None, name=kind)
    trace = opened.trace(ids=IDS)
    walked = list(trace.attention.items())
    assert [n for n, _ in walked] == list(trace.attention.kept) == [1, 3]
    assert all(weights is trace.attention[n] for n, weights in walked)
    with pytest.raises(regard.RegardError, match=r"it holds 1, 3, .*: \[attention\[n\] for n in attention.kept\]"):
        list(trace.attention)
    alone = opened.trace(ids=IDS, layers=())
    assert all(torch.equal(*each) for each in zip(alone.hidden_states, trace.hidden_states, strict=True))
    assert list(alone.attention.items()) == []


@pytest.mark.parametrize("layers", [(), []])
def test_no_layers_are_the_states_of_all_without_attention(layers: Any, tmp_path: Path) -> None:
    opened = model("llama")
    whole, alone = opened.trace(ids=IDS), opened.trace(ids=IDS, layers=layers)
    assert isinstance(alone.hidden_states, tuple)
    assert all(torch.equal(*each) for each in zip(alone.hidden_states, whole.hidden_states, strict=True))
    assert torch.equal(alone.logits, whole.logits)
    assert torch.equal(alone.token_embeddings, whole.token_embeddings)
    assert len(alone.attention) == len(whole.attention)
    assert alone.attention.kept == alone.values.kept == ()
    assert "No attention was kept, so no weights were checked." in alone.status.notes
    with pytest.raises(regard.RegardError, match=r"attention\[1\] was not kept: of 3 this trace holds none"):
        alone.attention[1]
    with pytest.raises(regard.RegardError, match="layers: got none, which keeps only states"):
        opened.trace(ids=IDS, layers=layers, statistics=True)
    alone.save(tmp_path / "a.safetensors")
    read = regard.open(tmp_path / "a.safetensors")
    assert torch.equal(read.hidden_states[2], whole.hidden_states[2])
    assert read.attention.kept == ()
    pair = Model(make_model("bart"), None, name="bart")
    states = pair.trace(ids=IDS, target_ids=[5, 7], layers=layers)
    expected = pair.trace(ids=IDS, target_ids=[5, 7])
    for ours, theirs in zip(states.decoder.hidden_states, expected.decoder.hidden_states, strict=True):
        assert torch.equal(ours, theirs)
    assert states.decoder.cross.kept == states.encoder.attention.kept == ()


def test_layers_that_are_not_kept_are_let_go_of() -> None:
    """What a trace of one layer holds does not grow with the number of layers."""
    held = []
    for layers in (2, 8):
        trace = model("llama", num_hidden_layers=layers).trace(ids=IDS, layers=[1], logits=False)
        vectors = [
            trace.hidden_states[1],
            trace.hidden_states[2],
            trace.values[1],
            trace.attention[1].query,
            trace.last_hidden_state,
        ]
        held.append(sum(tensor.untyped_storage().nbytes() for tensor in vectors))
        assert len(trace.hidden_states) == layers + 1
    assert held[0] == held[1]


@pytest.mark.parametrize(
    ("layers", "says"),
    [([3], "layers: 3 is out of range, LlamaForCausalLM has layers 0 to 2"), ([-1], "layers: -1 is out of range")],
)
def test_layers_that_do_not_exist(layers, says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        model("llama").trace(ids=IDS, layers=layers)


def test_a_module_that_serves_as_several_layers_is_refused() -> None:
    config = transformers.AlbertConfig(**SIZES, embedding_size=24, intermediate_size=37)
    opened = regard.load(transformers.AlbertModel(config).eval())
    assert len(opened.trace(ids=IDS).attention) == 3
    with pytest.raises(
        regard.RegardError, match="which attention calls of AlbertModel belong to them is known only after"
    ):
        opened.trace(ids=IDS, layers=[0])
