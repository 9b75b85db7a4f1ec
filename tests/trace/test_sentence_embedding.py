"""Sentence embeddings: sentence-transformers' own, and its formulas in float64."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

import regard
from regard.model_files.folder import default_folder
from regard.model_files.pooling import MODES, Dense, Pooling
from regard.trace.sentence_embedding import pool
from tests.support import MONEY, RIVER, make_tiny
from tests.support.attention_outputs import make_model

IDENTITY = "torch.nn.modules.linear.Identity"
TEXTS = [RIVER, MONEY, "Withdrawals!", "x"]


def by_hand(vectors: torch.Tensor, mode: str, left_out: int = 0) -> torch.Tensor:
    """The formulas, in float64, of the vectors behind those that are left out."""
    x, count = vectors.double()[left_out:], len(vectors) - left_out
    weights = torch.arange(left_out + 1, len(vectors) + 1).double()
    return {
        "cls": x[0],
        "lasttoken": x[-1],
        "max": x.max(0).values,
        "mean": x.sum(0) / count,
        "mean_sqrt_len_tokens": x.sum(0) / count**0.5,
        "weightedmean": (weights[:, None] * x).sum(0) / weights.sum(),
    }[mode]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode(mode: str) -> None:
    vectors = torch.randn(7, 5, generator=torch.Generator().manual_seed(3))
    expected = by_hand(vectors, mode)
    torch.testing.assert_close(pool(vectors, Pooling((mode,))).double(), expected, atol=1e-6, rtol=0)
    normalised = pool(vectors, Pooling((mode,), normalise=True))
    torch.testing.assert_close(normalised.double(), expected / expected.norm(), atol=1e-6, rtol=0)
    half = pool(vectors.bfloat16(), Pooling((mode,)))
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.double(), by_hand(vectors.bfloat16(), mode), atol=2e-2, rtol=1e-2)


def test_modes_are_joined() -> None:
    vectors = torch.randn(7, 5)
    joined = pool(vectors, Pooling(("max", "cls")))
    torch.testing.assert_close(joined, torch.cat([vectors.max(0).values, vectors[0]]))
    assert float(pool(vectors, Pooling(("max", "cls"), normalise=True)).norm()) == pytest.approx(1)


@pytest.mark.parametrize("mode", MODES)
def test_a_prompt_that_is_left_out(mode: str) -> None:
    vectors = torch.randn(7, 5, generator=torch.Generator().manual_seed(3))
    pooled = pool(vectors, Pooling((mode,), left_out=3))
    torch.testing.assert_close(pooled.double(), by_hand(vectors, mode, 3), atol=1e-6, rtol=0)
    with pytest.raises(regard.RegardError, match="the prompt takes all 7 tokens"):
        pool(vectors, Pooling((mode,), left_out=7))


def test_dense_layers() -> None:
    vectors, first, second, bias = torch.randn(7, 5), torch.randn(11, 5), torch.randn(3, 11), torch.randn(11)
    layers = (Dense(first, bias, "Tanh"), Dense(second, None, "Identity"))
    mean = vectors.double().mean(0)
    expected = second.double() @ torch.tanh(first.double() @ mean + bias.double())
    torch.testing.assert_close(pool(vectors, Pooling(("mean",), dense=layers)).double(), expected, atol=1e-5, rtol=0)
    normalised = pool(vectors, Pooling(("mean",), True, dense=layers))
    torch.testing.assert_close(normalised.double(), expected / expected.norm(), atol=1e-6, rtol=0)
    square = torch.randn(5, 5)
    added = pool(vectors, Pooling(("mean",), dense=(Dense(square, None, "ReLU", True),)))
    torch.testing.assert_close(added.double(), torch.relu(square.double() @ mean) + mean, atol=1e-5, rtol=0)
    matrix = pool(vectors, Pooling(("mean",), dense=(Dense(first, bias, "ReLU", 2 * first),)))
    expected = torch.relu(first.double() @ mean + bias.double()) + 2 * first.double() @ mean
    torch.testing.assert_close(matrix.double(), expected, atol=1e-5, rtol=0)
    with pytest.raises(regard.RegardError, match="a Dense takes vectors of 11 numbers, those pooled have 5"):
        pool(vectors, Pooling(("mean",), dense=layers[1:]))


def test_the_default_model(minilm: Any, bank: Any) -> None:
    expected = by_hand(bank[0].last_hidden_state, "mean")
    found = bank[0].embedding()
    torch.testing.assert_close(found.double(), expected / expected.norm(), atol=1e-6, rtol=0)
    many = minilm.embedding(TEXTS)
    assert many.shape == (4, 384)
    torch.testing.assert_close(many[0], found, atol=1e-6, rtol=0)
    torch.testing.assert_close(minilm.embedding(MONEY), many[1], atol=1e-6, rtol=0)


def sentence_transformers(folder: Path) -> Any:
    """The library's own model of a folder."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is not installed")
        return library.SentenceTransformer(str(folder), device="cpu")


@pytest.mark.filterwarnings("ignore")
def test_it_is_sentence_transformers_own(minilm: Any) -> None:
    library = sentence_transformers(default_folder())
    expected = torch.tensor(library.encode(TEXTS))
    torch.testing.assert_close(minilm.embedding(TEXTS), expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(minilm.trace(RIVER).embedding(), expected[0], atol=1e-6, rtol=0)
    long = " ".join(["bank"] * 300)  # which it cuts after 256 tokens
    assert float((minilm.embedding(long) - torch.tensor(library.encode(long))).abs().max()) > 1e-4


def folder_of(
    folder: Path, minilm: Any, config: dict[str, Any], *modules: str, kind: str = "bert", changes: Any = None,
    **settings: Any,
) -> Path:  # fmt: skip
    """A folder of a tiny model; changes: of its config. A module Dense has random weights, and makes 24 of 24."""
    make_tiny(folder, minilm, kind, **(changes or {}))
    kinds = ("Transformer", "Pooling", *modules)
    paths = ["", *(f"{n}_{kind}" for n, kind in enumerate(kinds) if n)]
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    for path in paths:
        (folder / path).mkdir(exist_ok=True)
        if path.endswith("Dense"):
            identity = {"in_features": 24, "out_features": 24, "bias": False, "activation_function": IDENTITY}
            (folder / path / "config.json").write_text(json.dumps(identity))
            save_file({"linear.weight": torch.randn(24, 24)}, folder / path / "model.safetensors")
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({"word_embedding_dimension": 24} | config))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 31, "do_lower_case": False}))
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    return folder


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_sentence_transformers_own(tmp_path: Path, minilm: Any, mode: str) -> None:
    folder = folder_of(tmp_path / "m", minilm, {"pooling_mode": mode})
    model, library = regard.load(folder, device="cpu"), sentence_transformers(folder)
    expected = torch.tensor(library.encode(TEXTS, batch_size=1))
    torch.testing.assert_close(
        model.embedding(TEXTS), expected, atol=1e-6 * max(1.0, float(expected.abs().max())), rtol=0
    )


def test_a_folder_of_ones_own(tmp_path: Path, minilm: Any) -> None:
    older = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    model = regard.load(folder_of(tmp_path / "cls", minilm, older), device="cpu")
    trace = model.trace("a river bank")
    assert torch.equal(trace.embedding(), trace.last_hidden_state[0])
    trace.save(tmp_path / "a.safetensors")
    opened = regard.open(tmp_path / "a.safetensors")
    torch.testing.assert_close(opened.embedding(), trace.embedding(), atol=1e-6, rtol=0)
    cnn = regard.load(folder_of(tmp_path / "cnn", minilm, older, "CNN"), device="cpu")
    says = "embedding: how .*cnn pools is not known: modules.json: module 2 is 'CNN'"
    for look in (lambda: cnn.embedding("a"), lambda: cnn.trace("a").embedding()):
        with pytest.raises(regard.RegardError, match=says):
            look()


# The shapes of what is read by these families: Qwen3-Embedding, EmbeddingGemma, gte and LaBSE.
GROUPED = {"num_key_value_heads": 1, "head_dim": 8}
IDS = {"pad_token_id": 0, "bos_token_id": 101, "cls_token_id": 101, "eos_token_id": 102, "sep_token_id": 102}
SHAPES: dict[str, tuple[str, str, tuple[str, ...], dict[str, Any]]] = {
    "qwen3-embedding": ("qwen3", "lasttoken", ("Normalize",), GROUPED),
    "embeddinggemma": (
        "gemma3_text", "mean", ("Dense", "Dense", "Normalize"),
        GROUPED | {"use_bidirectional_attention": True, "sliding_window": 7},
    ),
    "gte-modernbert": ("modernbert", "cls", (), IDS | {"global_attn_every_n_layers": 2, "local_attention": 8}),
    "labse": ("bert", "cls", ("Dense", "Normalize"), {}),
    "llm2vec": ("llama", "mean", (), {"num_key_value_heads": 1, "is_causal": False}),
}  # fmt: skip
PROMPTS = {"prompts": {"query": "query: ", "document": "title: none | text: "}, "default_prompt_name": "document"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES)
def test_families_of_encoders_are_sentence_transformers_own(tmp_path: Path, minilm: Any, shape: str) -> None:
    kind, mode, modules, changes = SHAPES[shape]
    config = {"pooling_mode": mode, "include_prompt": shape != "llm2vec"}
    folder = folder_of(tmp_path / "m", minilm, config, *modules, kind=kind, changes=changes, **PROMPTS)
    model, library = regard.load(folder, device="cpu"), sentence_transformers(folder)
    library.tokenizer.padding_side = "left" if mode == "lasttoken" else "right"
    for options in ({}, {"prompt_name": "query"}, {"prompt": "So : "}, {"prompt": ""}):
        expected = torch.tensor(library.encode(TEXTS, **options))
        bound = 1e-6 * max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(model.embedding(TEXTS, **options), expected, atol=bound, rtol=0)


def test_prompts_are_put_before_the_text(tmp_path: Path, minilm: Any) -> None:
    folder = folder_of(tmp_path / "m", minilm, {"pooling_mode": "mean", "include_prompt": False}, **PROMPTS)
    model = regard.load(folder, device="cpu")
    prompt = PROMPTS["prompts"]["document"]
    trace = model.trace(f"{prompt}a river bank")
    tokens = [token.text for token in trace.tokens]
    left_out = tokens.index("a")  # [CLS] and the prompt
    expected = by_hand(trace.last_hidden_state, "mean", left_out)
    for found in (trace.embedding(), model.embedding("a river bank"), model.embedding(["a river bank"])[0]):
        torch.testing.assert_close(found.double(), expected, atol=1e-6, rtol=0)
    trace.save(tmp_path / "a.safetensors")
    torch.testing.assert_close(
        regard.open(tmp_path / "a.safetensors").embedding(), trace.embedding(), atol=1e-6, rtol=0
    )
    assert torch.equal(model.embedding("a bank", prompt=prompt), model.embedding("a bank"))
    bare = model.trace("a bank").last_hidden_state
    torch.testing.assert_close(model.embedding("a bank", prompt="").double(), by_hand(bare, "mean"), atol=1e-6, rtol=0)
    asked = model.trace("query: a bank").last_hidden_state
    named = model.embedding("a bank", prompt_name="query").double()
    torch.testing.assert_close(named, by_hand(asked, "mean", 3), atol=1e-6, rtol=0)
    for given, says in (
        ({"prompt_name": "passage"}, "no prompt of the name 'passage', the model's folder has 'query', 'document'"),
        ({"prompt_name": "query", "prompt": "x"}, "given a prompt and a prompt_name, needs one of them"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            model.embedding("a bank", **given)
    with pytest.raises(regard.RegardError, match="text is blank"):
        model.embedding(" ", prompt_name="query")


def test_a_trace_of_a_model_with_dense_layers(tmp_path: Path, minilm: Any) -> None:
    model = regard.load(folder_of(tmp_path / "m", minilm, {"pooling_mode": "cls"}, "Dense", "Normalize"), device="cpu")
    trace = model.trace("a river bank")
    expected = model.pooling.dense[0].weight.double() @ trace.last_hidden_state[0].double()
    torch.testing.assert_close(trace.embedding().double(), expected / expected.norm(), atol=1e-6, rtol=0)
    trace.save(tmp_path / "a.safetensors")
    torch.testing.assert_close(
        regard.open(tmp_path / "a.safetensors").embedding(), trace.embedding(), atol=1e-6, rtol=0
    )


def test_what_does_not_pool_is_refused(tmp_path: Path, minilm: Any) -> None:
    make_tiny(tmp_path / "bare", minilm)
    bare = regard.load(tmp_path / "bare", device="cpu")
    with pytest.raises(regard.RegardError, match="its folder has no modules.json, which says how"):
        bare.trace("a river").embedding()
    with pytest.raises(regard.RegardError, match="it comes from no sentence encoder's folder"):
        regard.load(bare.model, tokenizer=bare.tokenizer).embedding("a river")
    bare.trace("a river").save(tmp_path / "a.safetensors")
    with pytest.raises(regard.RegardError, match="its folder has no modules.json, which says how"):
        regard.open(tmp_path / "a.safetensors").embedding()


def test_texts_that_are_not_as_the_model_reads_them(minilm: Any, tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    model = regard.load(folder_of(tmp_path / "m", minilm, {"pooling_mode": "mean"}, **prompts), device="cpu")
    with pytest.raises(regard.RegardError, match="texts of .* begin with 'query: ', given 'a river'"):
        model.trace("a river").embedding()
    assert model.trace("query: a river").embedding().shape == (24,)
    trace = replace(minilm.trace("A river"), pooling=Pooling(("mean",), lower_case=True))
    with pytest.raises(regard.RegardError, match=r"reads texts in lower case, given 'A river': give text.lower\(\)"):
        trace.embedding()


def test_an_encoder_decoder_is_refused(pair: Any) -> None:
    with pytest.raises(regard.RegardError, match="no sentence encoder's folder"):
        pair.encoder.embedding()
    with pytest.raises(regard.RegardError, match="is an encoder-decoder, which makes no sentence embedding here"):
        regard.load(make_model("bart")).embedding("a river")
