"""Decoders and encoder-decoders as tiny random models, against their own eager code."""

import subprocess
import sys

import pytest
import torch
import transformers

import regard
from benchmarks import families
from benchmarks.tiny import make
from regard.models.model import Model
from regard.verify.check import WEIGHTS, largest_difference
from tests.support import ROOT

IDS, TARGET = [5, 17, 3, 60, 41, 9, 2], [0, 8, 30, 12, 7]
SMALL = {"vocab_size": 97, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
STACK = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 31,
    "decoder_start_token_id": 0,
}
DECODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 31,
}
EXPERTS = {"num_local_experts": 4, "num_experts_per_tok": 2}
PAIRS = {
    "marian": STACK | {"scale_embedding": True},
    "bart": STACK,
    "m2m_100": STACK | {"scale_embedding": True},
    "t5": {"d_model": 32, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 4, "d_kv": 8, "d_ff": 48,
           "decoder_start_token_id": 0},
}  # fmt: skip
DECODERS = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 31},
    "llama": DECODER | {"num_key_value_heads": 2},
    "gemma2": DECODER | {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 3, "attn_logit_softcapping": 2.0},
    "mistral": DECODER | {"num_key_value_heads": 2, "sliding_window": 3},
    "gpt_oss": DECODER | {"num_key_value_heads": 2, "head_dim": 8, "sliding_window": 3} | EXPERTS,
    "opt": DECODER | {"ffn_dim": 48, "word_embed_proj_dim": 32},
}  # fmt: skip


def tiny(kind: str, sizes: dict, language: bool = False) -> transformers.PreTrainedModel:
    torch.manual_seed(0)
    config = transformers.AutoConfig.for_model(kind, **(SMALL | sizes))
    auto = transformers.AutoModelForCausalLM if language else transformers.AutoModel
    model = auto.from_config(config).eval()
    for name, parameter in model.named_parameters():
        if "sinks" in name:
            torch.nn.init.normal_(parameter)
    return model


def same(ours, theirs, tolerance: float = 5e-6) -> None:
    assert len(ours) == len(theirs)
    for mine, own in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.dense(), own[0], atol=tolerance, rtol=0)


@pytest.mark.parametrize("kind", PAIRS)
def test_encoder_decoders(kind: str) -> None:
    model = tiny(kind, PAIRS[kind])
    pair = Model(model, None, name=kind).trace(ids=IDS, target_ids=TARGET)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(
            input_ids=torch.tensor([IDS]),
            decoder_input_ids=torch.tensor([TARGET]),
            output_attentions=True,
            output_hidden_states=True,
        )
    same(pair.encoder.attention, expected.encoder_attentions)
    same(pair.decoder.attention, expected.decoder_attentions)
    same(pair.decoder.cross, expected.cross_attentions)
    assert pair.decoder.cross[0].shape == (4, len(TARGET), len(IDS))
    for ours, theirs in (
        (pair.encoder, expected.encoder_last_hidden_state),
        (pair.decoder, expected.last_hidden_state),
    ):
        torch.testing.assert_close(ours.last_hidden_state, theirs[0], atol=2e-5, rtol=0)
        assert ours.status.embedding_difference <= 1e-6
        assert (ours.position_embeddings is None) == (kind == "t5")
    for n in range(2):
        torch.testing.assert_close(
            pair.decoder.hidden_states[n], expected.decoder_hidden_states[n][0], atol=2e-5, rtol=0
        )
    assert pair.status.difference < 5e-6


@pytest.mark.parametrize("kind", DECODERS)
def test_decoders(kind: str) -> None:
    model = tiny(kind, DECODERS[kind], language=True)
    one, other = Model(model, None, name=kind).trace(ids=[IDS, IDS[:4]])
    model.set_attn_implementation("eager")
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([IDS]), output_attentions=True, output_hidden_states=True)
    same(one.attention, expected.attentions)
    for n, state in enumerate(one.hidden_states[:-1]):
        torch.testing.assert_close(state, expected.hidden_states[n][0], atol=2e-5, rtol=0)
    torch.testing.assert_close(one.last_hidden_state, expected.hidden_states[-1][0], atol=2e-5, rtol=0)
    torch.testing.assert_close(one.logits, expected.logits[0], atol=2e-5, rtol=0)
    torch.testing.assert_close(other.logits, one.logits[:4], atol=2e-5, rtol=0)  # a causal model does not look ahead
    assert one.status.embedding_difference <= 2e-6
    assert one.status.difference < 5e-6
    assert (one.position_embeddings is None) == (kind not in ("gpt2", "opt"))


@pytest.mark.usefixtures("no_checks_of_annotations")  # what it calls its last states are its logits, of another width
def test_a_pair_that_reports_its_weights_has_those_of_its_decoder_too() -> None:
    model, inputs = make("fsmt")  # no module of a list gives its states
    own, _ = families.eager(model, inputs)
    trace = families.traced(Model(model, None, name="fsmt"), inputs)
    found = largest_difference(trace, own, WEIGHTS)
    assert found is not None
    assert found[0] < 1e-5
    assert len(trace.decoder.attention) == len(trace.decoder.cross) == 2
    assert not any(note.startswith("attention in") for note in trace.status.notes)


def test_what_an_encoder_decoder_needs() -> None:
    opened = Model(tiny("bart", PAIRS["bart"]), None, name="tiny-bart")
    for options, says in (
        ({"ids": IDS, "target_ids": [97]}, "target id 97 is out of range"),
        ({"ids": IDS, "target_ids": [5] * 32}, "target has 32 tokens with special tokens, tiny-bart takes at most 31"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            opened.trace(**options)
    alone = Model(tiny("llama", DECODERS["llama"]), None, name="tiny-llama")
    with pytest.raises(regard.RegardError, match="tiny-llama is not an encoder-decoder"):
        alone.trace(ids=IDS, target_ids=TARGET)


def test_pairs_in_a_batch_are_as_alone() -> None:
    opened = Model(tiny("marian", PAIRS["marian"]), None, name="marian")
    batched = opened.trace(ids=[IDS, IDS[:3]], target_ids=[TARGET[:2], TARGET])
    for pair, ids, target in zip(batched, (IDS, IDS[:3]), (TARGET[:2], TARGET), strict=True):
        single = opened.trace(ids=ids, target_ids=target)
        torch.testing.assert_close(pair.decoder.last_hidden_state, single.decoder.last_hidden_state, atol=1e-5, rtol=0)
        for a, b in zip(pair.decoder.cross, single.decoder.cross, strict=True):
            assert a.shape == b.shape == (4, len(target), len(ids))
            torch.testing.assert_close(a.dense(), b.dense(), atol=1e-5, rtol=0)


@pytest.mark.long  # 7 s: a benchmark
def test_families_that_compute_with_their_masks() -> None:
    """Doge adds to its mask, DeepSeek V4 adds keys where its mask is a tensor: both are noticed, and exact."""
    command = [sys.executable, "-m", "benchmarks.families", "doge", "deepseek_v4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert "2 families: 2 exact" in done.stdout, done.stdout
    assert done.stdout.count("Masks are stored as tensors") == 2
    assert "In layers 1, 3, some keys are not tokens" in done.stdout
