"""The lines say what the numbers are, and whether the choice was made or asked for."""

from regard.explain.texts.highlights import Link
from regard.explain.weights.specific_weights import SpecificWeight
from regard.questions.see.choice import framed_link, word_choice
from regard.text.tokens import Token

TOKENS = [Token(n, text, 0, 0, n, False) for n, text in enumerate([" dog", "gy", " the\n", "x"])]


def test_the_lines_have_the_numbers() -> None:
    best = SpecificWeight(2, 1, (0, 1), 2, 0.7512, 0.204, 0.0149, 1.3)
    said = "“doggy” gives “the” 0.75 (others at that distance 0.20, to that token 0.015)"
    assert word_choice(best, TOKENS) == f"chosen: {said}"
    assert word_choice(best, TOKENS, chosen=False) == said
    assert framed_link(Link(2, 1, 0, " dog", 3, "x", 0.72), TOKENS).startswith("framed: “dog” looks at “x” 0.72, its")
    assert framed_link(None, []) == ""
