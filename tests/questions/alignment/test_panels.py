"""A translation fits one screen; the table has each token's own weights."""

import pytest
import torch

import regard
from regard.display.terminal_parts import lines_of
from regard.questions.alignment.answer import Translation
from regard.questions.alignment.panels import MOST_ROWS
from regard.questions.see.answer import seen


@pytest.mark.parametrize("width", [60, 80, 140])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_one_screen(width: int, count: int) -> None:
    from regard.text import tokenizers

    text, target = "a bank of a river " * 8, "la rive du fleuve " * 8
    torch.manual_seed(5)
    words = tokenizers.words([text, target], frame="end")
    sizes = regard.TransformerConfig.translator(len(words), start=words.bos_token_id, d_model=32, layers=2)
    model = regard.load(regard.Transformer(sizes), tokenizer=words)
    found = seen(model.trace([text] * count, target=[target] * count), kind=Translation)
    lines = lines_of(found.shown(width), width)
    out = "\n".join(lines)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    told = " ".join(out.split())
    words = [word for line in lines[2 : lines.index("")] for word in line.split()]
    assert sorted(words) == sorted([*text.split(), *target.split()]) or count > 1
    assert "more target tokens with --all" in told
    assert ("more texts are shown with --all" in told) == (count > 2)
    alignment = found.summary.target.alignments[0]
    shown = min(count, 2)
    assert "the words with the largest weights" in told
    weights = sorted((each.written.top[0].weight for each in alignment.tokens[1:-1]), reverse=True)
    for weight in weights[: MOST_ROWS // shown]:
        assert f"{weight:.2f}" in out
