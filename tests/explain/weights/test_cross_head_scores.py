"""Scores of cross-attention heads, against sums written out, and on a real translator."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.weights.alignment import align
from regard.explain.weights.cross_head_scores import cross_head_scores
from regard.text import tokenizers

FOLDER = os.environ.get("REGARD_OPUS_MT", "")
PAIRS = [("the white table stands", "la table blanche reste"), ("the table", "la table")]


@pytest.fixture(scope="module")
def pairs() -> list[Any]:
    torch.manual_seed(5)
    words = tokenizers.words([text for pair in PAIRS for text in pair], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    model = regard.load(regard.Transformer(sizes), tokenizer=words)
    return model.trace([text for text, _ in PAIRS], target=[target for _, target in PAIRS])


def test_scores_are_the_means_that_they_say(pairs: list[Any]) -> None:
    found = cross_head_scores(pairs)
    rows: dict[str, list[float]] = {"written": [], "read": [], "successor": [], "special": []}
    for pair in pairs:
        weights = pair.decoder.cross[1][2].double()
        special = [n for n, token in enumerate(pair.encoder.tokens) if token.special]
        for each in align(pair).tokens:
            if each.written is None or pair.decoder.tokens[each.token].special:
                continue
            place = each.written.top[0].token
            rows["written"].append(float(weights[each.token - 1, place]))
            rows["read"].append(float(weights[each.token, place]))
            rows["special"].append(float(weights[each.token, special].sum()))
            if not pair.encoder.tokens[place + 1].special:
                rows["successor"].append(float(weights[each.token, place + 1]))
    assert found.counts == {"queries": len(rows["written"]), "successors": len(rows["successor"])}
    assert len(rows["written"]) == 6  # 4 and 2 words
    for name, values in rows.items():
        assert found.scores[name][1, 2] == pytest.approx(np.mean(values), abs=1e-9), name


def test_nothing_is_refused() -> None:
    with pytest.raises(RegardError, match="given no trace"):
        cross_head_scores([])


@pytest.mark.real
@pytest.mark.skipif(not FOLDER or not Path(FOLDER).is_dir(), reason=f"no model in REGARD_OPUS_MT={FOLDER!r}")
def test_a_translators_heads() -> None:
    """Upper layers look at the source of what they write, lower ones at that of what they have read."""
    model = regard.load(FOLDER, device="cpu")
    texts = ["The old man walked along the river bank.", "The red car is very fast."]
    found = cross_head_scores([model.generate(text, max_new_tokens=30).trace for text in texts])
    (written, _, most), (read, _, _) = found.best("written", 1)[0], found.best("read", 1)[0]
    assert written > read
    assert most > 0.5
