"""A translation fits one screen; the table has each token's own weights."""

import pytest
import torch

import regard
from regard.explain.texts.summary import summarise
from regard.views.terminal.alignment import MOST_ROWS, show_translation
from tests.support.terminal import printed


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_one_screen(width: int, count: int) -> None:
    from regard.text import tokenizers

    text, target = "a bank of a river " * 8, "la rive du fleuve " * 8
    torch.manual_seed(5)
    words = tokenizers.words([text, target], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    model = regard.load(regard.Transformer(sizes), tokenizer=words)
    summary = summarise(model.trace([text] * count, target=[target] * count), None)
    out = printed(show_translation, summary, [(text, target)] * count, width=width)
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    told = " ".join(out.split())
    assert " ".join(target.split()) in told or count > 1
    assert "more target tokens with --all" in told
    assert ("more texts are left out" in told) == (count > 2)
    alignment = summary.target.alignments[0]
    shown = min(count, 2)
    assert "the words with the largest weights" in told
    weights = sorted((each.written.top[0].weight for each in alignment.tokens[1:-1]), reverse=True)
    for weight in weights[: MOST_ROWS // shown]:
        assert f"{weight:.2f}" in out
