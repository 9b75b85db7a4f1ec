"""The textbook's 150 lines give the numbers of the library's layers, of `attend`, and of the articles."""

import ast
import subprocess
import sys

import pytest
import torch
from torch import nn

import regard
from drawings.printed import printed
from regard import textbook
from regard.nn.positions import sinusoidal
from tests.support import ROOT

FILE = ROOT / "src" / "regard" / "textbook.py"
CLOSE = {"atol": 1e-6, "rtol": 1e-6}


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(0)


def test_it_is_short_and_imports_torch_alone() -> None:
    source = FILE.read_text("utf-8")
    assert len(source.splitlines()) <= 150
    tree = ast.parse(source)
    assert all(node.end_lineno - node.lineno < 15 for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    imported = {(each.module or "") if isinstance(each, ast.ImportFrom) else each.names[0].name
                for each in ast.walk(tree) if isinstance(each, ast.Import | ast.ImportFrom)}  # fmt: skip
    assert imported == {"math", "torch"}
    alone = "import runpy, sys; runpy.run_path(sys.argv[1]); print('regard' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", alone, FILE], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_words_are_numbered_in_sorted_order() -> None:
    text = "Life is short, eat dessert first"
    numbers = textbook.dictionary(text)
    assert numbers == {"Life": 0, "dessert": 1, "eat": 2, "first": 3, "is": 4, "short": 5}
    assert textbook.ids(text, numbers).tolist() == [0, 4, 5, 2, 1, 3]


@pytest.mark.parametrize(("length", "width"), [(1, 4), (100, 400), (7, 3)])
def test_positions_are_the_librarys(length: int, width: int) -> None:
    torch.testing.assert_close(textbook.sinusoidal(length, width), sinusoidal(length, width), **CLOSE)


def test_the_position_matrix_is_the_articles() -> None:
    shown = torch.tensor(printed("contextual embeddings")["positional_encoding"]["values"])
    torch.testing.assert_close(textbook.sinusoidal(5, 3), shown, atol=5e-3, rtol=0)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_attends(causal: bool) -> None:
    query, key, value = torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 5), torch.randn(2, 3, 7, 4)
    mask = torch.ones(7, 7, dtype=torch.bool).tril() if causal else None
    output, weights = textbook.attention(query, key, value, mask)
    expected = regard.attend(query, key, value, causal=causal)
    torch.testing.assert_close(output, expected.output, **CLOSE)
    torch.testing.assert_close(weights, expected.weights.dense(), **CLOSE)


def test_layers_take_the_librarys_weights() -> None:
    x, context = torch.randn(2, 7, 64), torch.randn(2, 5, 64)
    pairs: list[tuple[nn.Module, nn.Module, tuple]] = [
        (regard.SelfAttention(64, 24, 28), textbook.SelfAttention(64, 24, 28), (x,)),
        (regard.CrossAttention(64, 64, 24, 28), textbook.CrossAttention(64, 24, 28), (x, context)),
        (regard.MultiHeadAttention(d_model=64, heads=4), textbook.MultiHeadAttention(64, 4), (x,)),
        (regard.MultiHeadAttention(d_model=64, heads=4), textbook.MultiHeadAttention(64, 4), (x, context)),
    ]
    for library, plain, inputs in pairs:
        plain.load_state_dict(library.state_dict())
        torch.testing.assert_close(plain(*inputs), library(*inputs), **CLOSE)
    assert pairs[1][1](x, context).shape == (2, 7, 28)


def test_a_transformer_that_writes() -> None:
    config = regard.TransformerConfig(vocabulary=50, positions="sinusoidal", d_model=64, heads=4, layers=3)
    library, plain = regard.Transformer(config).eval(), textbook.Decoder(50, 64, heads=4, layers=3)
    assert float(plain.embedding.weight.detach().norm(dim=-1).mean()) == pytest.approx(1.0, rel=0.05)
    plain.load_state_dict(library.state_dict())
    ids = torch.randint(50, (2, 33))
    torch.testing.assert_close(plain(ids), library(ids).logits, **CLOSE)
    written = plain.generate(ids, 5)
    assert torch.equal(written[:, :33], ids)
    assert torch.equal(written[:, -1], plain(written[:, :-1])[:, -1].argmax(-1))
    assert written.shape == plain.generate(ids, 5, temperature=2.0).shape == (2, 38)


def test_a_transformer_that_translates() -> None:
    config = regard.TransformerConfig.translator(50, start=0, d_model=64, layers=2)
    library = regard.Transformer(config).eval()
    plain = textbook.EncoderDecoder(50, 64, heads=8, layers=2, d_hidden=512, activation=nn.functional.relu)
    plain.load_state_dict(library.state_dict())
    source, target = torch.randint(50, (2, 9)), torch.randint(50, (2, 5))
    expected = library(source, target).logits
    torch.testing.assert_close(plain(target, plain.encode(source)), expected, atol=1e-6, rtol=1e-5)
    assert plain.generate(target, 3, context=plain.encode(source)).shape == (2, 8)


def test_one_head_gives_the_figures_of_the_sentence_step_by_step() -> None:
    article = printed("one sentence")
    ids = textbook.ids(article["sentence"], textbook.dictionary(article["sentence"]))
    torch.manual_seed(123)
    x = nn.Embedding(6, 16)(ids).detach()
    torch.manual_seed(123)
    query, key, value = (x @ torch.rand(width, 16).mT for width in (24, 24, 28))
    context, weights = textbook.attention(query, key, value)
    torch.testing.assert_close(weights[1], torch.tensor(article["weights"]), atol=5e-5, rtol=0)
    torch.testing.assert_close(context[1], torch.tensor(article["context"]), atol=5e-5, rtol=0)


@pytest.mark.parametrize("words", ["river", "finance"])
def test_bank_between_river_and_finance_words_gives_the_article_s_figures(words: str) -> None:
    article = printed("river and finance")
    x = torch.tensor([[float(value) for value in article["embeddings"][word]] for word in article[words]])
    mixed = (x @ x.mT).softmax(-1) @ x  # no parameters
    torch.testing.assert_close(mixed, torch.tensor(article["parameter_free_attention"][words]), atol=6e-4, rtol=0)
    layer = textbook.SelfAttention(4, 3)
    torch.manual_seed(0)
    for projection in (layer.query, layer.key, layer.value):
        projection.weight.data = torch.rand(4, 3).mT
    torch.testing.assert_close(layer(x), torch.tensor(article["self_attention_layer"][words]), atol=6e-4, rtol=0)
