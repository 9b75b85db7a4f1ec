"""Sentences about a translation name the planted links, and none if there are none."""

from dataclasses import replace

import pytest
import torch

import regard
from regard.explain.texts.summary import Summary, summarise
from regard.explain.weights.alignment import Alignment, why_these_layers
from regard.explain.weights.attended import Share
from regard.explain.wording import number
from regard.questions.alignment.sentences import alignment_findings

TEXT, TARGET = "the white table stands", "la table blanche reste"
CLEAR = {"la": ("the", 0.4), "table": ("table", 0.8), "blanche": ("white", 0.7), "reste": ("stands", 0.5)}


@pytest.fixture(scope="module")
def traced() -> Summary:
    from regard.text import tokenizers

    torch.manual_seed(5)
    words = tokenizers.words([TEXT, TARGET], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    model = regard.load(regard.Transformer(sizes), tokenizer=words)
    return summarise([model.trace(TEXT, target=TARGET)], None)


def planted(summary: Summary, links: dict[str, tuple[str, float]], special: float = 0.0) -> Summary:
    """The same with each target token's row giving one source token a weight; others give all tokens 0.1."""
    assert summary.target is not None
    (alignment,) = summary.target.alignments
    source = [token.text for token in summary.tokens[0]]
    tokens = []
    for each in alignment.tokens:
        name, weight = links.get(each.text, ("", 0.0))
        shares = [Share(n, text, weight if text == name else 0.1) for n, text in enumerate(source[:4])]
        row = replace(each.read, top=sorted(shares, key=lambda share: -share.weight), special=special, sinks=[])
        tokens.append(replace(each, written=row))
    changed: Alignment = replace(alignment, tokens=tokens, agreement=0.7, written_layer=1, read_layer=0)
    return replace(summary, target=replace(summary.target, alignments=[changed]))


def test_rows_that_attend_to_special_tokens(traced: Summary) -> None:
    assert "special tokens" not in alignment_findings(planted(traced, CLEAR, special=0.1))[0]
    assert "special tokens" in alignment_findings(planted(traced, CLEAR, special=0.9))[0]


def test_why_these_layers_and_no_others(traced: Summary) -> None:
    (alignment,) = planted(traced, CLEAR).target.alignments  # type: ignore[union-attr]
    both = why_these_layers(alignment)
    assert all(part in both for part in ("layer 1", "layer 0", number(0.7)))
    assert "layer 0" not in why_these_layers(replace(alignment, read_layer=1))
    assert "all texts" in why_these_layers(alignment, 3)
    assert "all texts" not in both
