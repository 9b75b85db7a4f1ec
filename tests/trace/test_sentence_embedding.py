"""Sentence embeddings: sentence-transformers' own, and its formulas in float64."""

import json
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.model_files.folder import default_folder
from regard.model_files.pooling import MODES, Pooling
from regard.trace.sentence_embedding import pool
from tests.support import MONEY, RIVER, make_tiny
from tests.support.attention_outputs import make_model

TEXTS = [RIVER, MONEY, "Withdrawals!", "x"]


def by_hand(vectors: torch.Tensor, mode: str) -> torch.Tensor:
    """The formulas, in float64."""
    x, count = vectors.double(), len(vectors)
    weights = torch.arange(1, count + 1).double()
    return {
        "cls": x[0],
        "lasttoken": x[-1],
        "max": x.max(0).values,
        "mean": x.sum(0) / count,
        "mean_sqrt_len_tokens": x.sum(0) / count**0.5,
        "weightedmean": (weights[:, None] * x).sum(0) / (count * (count + 1) / 2),
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


def test_the_default_model(minilm: Any, bank: Any) -> None:
    expected = by_hand(bank[0].contextual, "mean")
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


def folder_of(folder: Path, minilm: Any, config: dict[str, Any], *modules: str, **settings: Any) -> Path:
    make_tiny(folder, minilm)
    kinds = ("Transformer", "Pooling", *modules)
    paths = ["", *(f"{n}_{kind}" for n, kind in enumerate(kinds) if n)]
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    for path in paths:
        (folder / path).mkdir(exist_ok=True)
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
    assert torch.equal(trace.embedding(), trace.contextual[0])
    trace.save(tmp_path / "a.safetensors")
    opened = regard.open(tmp_path / "a.safetensors")
    assert torch.equal(opened.embedding(), trace.embedding())
    dense = regard.load(folder_of(tmp_path / "dense", minilm, older, "Dense"), device="cpu")
    says = "embedding: how .*dense pools is not known: modules.json: module 2 is 'Dense'"
    for look in (lambda: dense.embedding("a"), lambda: dense.trace("a").embedding()):
        with pytest.raises(regard.RegardError, match=says):
            look()


def test_what_does_not_pool_is_refused(tmp_path: Path, minilm: Any) -> None:
    make_tiny(tmp_path / "bare", minilm)
    bare = regard.load(tmp_path / "bare", device="cpu")
    with pytest.raises(regard.RegardError, match="its folder has no modules.json, which says how"):
        bare.trace("a river").embedding()
    with pytest.raises(regard.RegardError, match="it comes from no sentence encoder's folder"):
        regard.load(bare.model, tokenizer=bare.tokenizer).embedding("a river")
    bare.trace("a river").save(tmp_path / "a.safetensors")
    with pytest.raises(regard.RegardError, match="the trace was saved without saying it"):
        regard.open(tmp_path / "a.safetensors").embedding()


def test_texts_that_are_not_as_the_model_reads_them(minilm: Any, tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    model = regard.load(folder_of(tmp_path / "m", minilm, {"pooling_mode": "mean"}, **prompts), device="cpu")
    for look in (lambda: model.embedding("a river"), lambda: model.trace("a river").embedding()):
        with pytest.raises(regard.RegardError, match="texts of .* begin with 'query: ', given 'a river'"):
            look()
    assert model.embedding("query: a river").shape == (24,)
    trace = replace(minilm.trace("A river"), pooling=Pooling(("mean",), lower_case=True))
    with pytest.raises(regard.RegardError, match=r"reads texts in lower case, given 'A river': give text.lower\(\)"):
        trace.embedding()


def test_an_encoder_decoder_is_refused(pair: Any) -> None:
    with pytest.raises(regard.RegardError, match="no sentence encoder's folder"):
        pair.encoder.embedding()
    with pytest.raises(regard.RegardError, match="is an encoder-decoder, which makes no sentence embedding here"):
        regard.load(make_model("bart")).embedding("a river")
