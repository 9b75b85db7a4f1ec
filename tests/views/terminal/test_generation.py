"""What was written fits one screen, with a bar under each token that is as high as its probability."""

import pytest
import torch

import regard
from regard.explain.logits.predictions import names_of
from regard.explain.logits.written_tokens import writing
from regard.generation.generator import Generated
from regard.views.terminal.generation import MOST_ROWS, _lines_of, show_writing
from tests.support.terminal import printed


@pytest.fixture(scope="module")
def done() -> Generated:
    from regard.text import tokenizers

    torch.manual_seed(3)
    words = tokenizers.words(["a bank of a river by the town"], frame="end")
    sizes = regard.TransformerConfig.nanogpt(len(words), d_model=32, layers=2, heads=2, length=256)
    return regard.load(regard.Transformer(sizes), tokenizer=words).generate("a bank of", new_tokens=150)


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(done: Generated, width: int) -> None:
    out = printed(show_writing, done, width=width)
    lines = out.splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    assert lines[0].startswith("a bank of")
    assert set(lines[1].strip()) <= set(" ▁▂▃▄▅▆▇█")
    if len(done.trace.tokens) - done.start > MOST_ROWS:
        assert f"the {MOST_ROWS} least likely of" in out
    found = writing(done.trace, done.start, done.ended, names_of(done.trace))
    least = min(each.probability for each in found.tokens)
    assert f"  {least:.2f}  " in out


def test_lines_break_at_blanks_and_where_the_text_does() -> None:
    text = "one two\nthree four fivesixseven"
    assert [text[a:b] for a, b in _lines_of(text, 8)] == ["one two\n", "three ", "four ", "fivesixs", "even"]
    assert _lines_of("", 8) == []
