"""GGUF files: the very weights that they hold, and one clear line where they cannot be read."""

import importlib.util
from pathlib import Path

import pytest
import torch
import transformers

import regard
from regard.gguf import file as files
from tests.gguf.gguf_files import add_tensor, begin, finish
from tests.model_files.folders import refused

gguf = pytest.importorskip("gguf", reason="the package gguf is not installed (extra gguf)")
pytest.importorskip("accelerate", reason="the package accelerate is not installed (extra gguf)")

LAYERS, WIDTH, HEADS, GROUPS, HIDDEN = 2, 96, 6, 3, 160
PIECES = ["<unk>", "<s>", "</s>", *"abcknr", "\u0120", "an", "ank", "bank", "\u0120bank"]
MERGES = ["a n", "an k", "b ank", "\u0120 bank"]


def model_object() -> transformers.LlamaForCausalLM:
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            vocab_size=len(PIECES),
            hidden_size=WIDTH,
            intermediate_size=HIDDEN,
            num_hidden_layers=LAYERS,
            num_attention_heads=HEADS,
            num_key_value_heads=GROUPS,
            max_position_embeddings=53,
            rms_norm_eps=1e-5,
            tie_word_embeddings=True,
        )
    ).eval()


def turned(weight: torch.Tensor, heads: int) -> torch.Tensor:
    """llama.cpp turns neighbouring components of a query or key, transformers the two halves of it."""
    return weight.reshape(heads, 2, -1, weight.shape[1]).transpose(1, 2).reshape(weight.shape)


def write(file: Path, model: transformers.LlamaForCausalLM, kind: str = "F32", tokenizer: bool = True) -> None:
    writer = begin(file, "llama", LAYERS, WIDTH, HIDDEN, HEADS, len(PIECES))
    writer.add_head_count_kv(GROUPS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    if tokenizer:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("default")
        writer.add_token_list(PIECES)
        writer.add_token_types([3, 3, 3] + [1] * (len(PIECES) - 3))
        writer.add_token_merges(MERGES)
        writer.add_unk_token_id(0)
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
    names = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v"}
    names |= {"self_attn.o_proj": "attn_output", "input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
    names |= {f"mlp.{name}_proj": f"ffn_{name}" for name in ("gate", "up", "down")}
    for key, tensor in model.model.state_dict().items():
        if key.startswith("layers."):
            _, layer, *rest = key.split(".")
            name = f"blk.{layer}.{names['.'.join(rest[:-1])]}.weight"
        else:
            name = {"embed_tokens.weight": "token_embd.weight", "norm.weight": "output_norm.weight"}[key]
        if ".attn_q." in name or ".attn_k." in name:
            tensor = turned(tensor, HEADS if ".attn_q." in name else GROUPS)
        add_tensor(writer, name, tensor.float().numpy().copy(), kind)
    finish(writer)


@pytest.fixture(scope="module")
def model() -> transformers.LlamaForCausalLM:
    return model_object()


@pytest.fixture(scope="module")
def whole(model, tmp_path_factory) -> Path:
    file = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    write(file, model)
    return file


def test_its_weights_are_those_of_the_model_it_was_written_from(model, whole) -> None:
    opened = regard.load(whole, device="cpu")
    theirs = dict(model.named_parameters())
    for name, weight in opened.model.named_parameters():
        assert torch.equal(weight, theirs[name]), name
    ids = [1, 12, 9, 4, 12]
    trace, expected = opened.trace(ids=ids), regard.load(model).trace(ids=ids)
    assert torch.equal(trace.logits, expected.logits)
    assert torch.equal(trace.attention[1].dense(), expected.attention[1].dense())
    (note,) = trace.status.notes
    assert "GGUF: 20 F32" in note


def test_its_tokenizer_is_read_with_it(whole) -> None:
    trace = regard.load(whole, device="cpu").trace("bank bank")
    assert [token.text for token in trace.tokens if not token.special] == ["bank", " bank"]
    assert len(trace.word("bank")) == 2


def test_a_quantised_one_says_so_and_is_the_quantised_model(model, tmp_path) -> None:
    write(tmp_path / "tiny.gguf", model, "Q8_0")
    opened = regard.load(tmp_path, device="cpu")  # a folder with this one file
    weight, original = (m.model.layers[1].mlp.down_proj.weight.detach() for m in (opened.model, model))
    apart = float((weight - original).abs().max())
    assert 0 < apart <= float(original.abs().max()) / 127 / 2 * 1.01
    blocks = weight.reshape(-1, 32)
    steps = blocks / (blocks.abs().amax(1, keepdim=True) / 127)
    torch.testing.assert_close(steps, steps.round(), atol=1e-3, rtol=0)  # whole multiples of a block's step
    trace = opened.trace("bank bank")
    (note,) = trace.status.notes
    assert "GGUF: 15 Q8_0, 5 F32" in note
    assert trace.status.difference < 1e-6


def test_without_a_tokenizer_ids_are_traced(model, tmp_path) -> None:
    write(tmp_path / "bare.gguf", model, tokenizer=False)
    opened = regard.load(tmp_path / "bare.gguf", device="cpu")
    assert opened.tokenizer is None
    assert len(opened.trace(ids=[3, 4, 5]).attention) == LAYERS


def test_truncated_and_foreign_files(whole, tmp_path) -> None:
    content = whole.read_bytes()
    file = tmp_path / "cut.gguf"
    for size in (len(content) - 1000, len(content) // 2, 900, 100, 3, 0):
        file.write_bytes(content[:size])
        refused(file, "is truncated or not a GGUF file")
    file.write_bytes(b"x" * 5000)
    refused(file, "is truncated or not a GGUF file")


def test_a_file_without_one_of_its_tensors(model, tmp_path) -> None:
    class Without:
        def __init__(self) -> None:
            self.model = torch.nn.Module()
            self.model.state_dict = lambda: {
                key: tensor for key, tensor in model.model.state_dict().items() if "layers.1.mlp.up" not in key
            }

    write(tmp_path / "tiny.gguf", Without())
    refused(tmp_path, "is incomplete: 1 tensors are missing, the first 'model.layers.1.mlp.up_proj.weight'")


def test_which_file_is_meant(whole, tmp_path) -> None:
    refused(tmp_path / "nowhere.gguf", "there is no such file")
    refused("some/nowhere.gguf", "there is no such file")
    for name in ("a.gguf", "b.gguf"):
        (tmp_path / name).write_bytes(whole.read_bytes())
    refused(tmp_path, r"holds 2 GGUF files \(a.gguf, b.gguf\): name one of them")
    assert regard.load(tmp_path / "b.gguf", device="cpu").name.endswith("b.gguf")


def test_what_is_missing_is_named(whole, monkeypatch) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in files.PACKAGES else found(name))
    refused(whole, r"reading it needs gguf and accelerate: pip install 'regard\[gguf\]'")


def test_nothing_of_the_package_stays_changed(whole) -> None:
    from transformers import modeling_gguf_pytorch_utils as theirs

    before = gguf.GGUFReader, gguf.get_tensor_name_map, theirs.tqdm, theirs._gguf_parse_value
    regard.load(whole, device="cpu")
    assert (gguf.GGUFReader, gguf.get_tensor_name_map, theirs.tqdm, theirs._gguf_parse_value) == before
