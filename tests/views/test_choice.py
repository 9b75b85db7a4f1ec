"""The line says what the numbers are, and whether the choice was made or asked for."""

from regard.explain.weights.specific_weights import SpecificWeight
from regard.text.tokens import Token
from regard.views.choice import why


def test_the_line() -> None:
    tokens = [Token(n, text, 0, 0, n, False) for n, text in enumerate([" dog", "gy", " the\n", "x"])]
    best = SpecificWeight(2, 5, (0, 1), 2, 0.7512, 0.204, 0.0149, 1.3)
    said = "“doggy” gives “␣the↵” 0.75 (others at that distance 0.20, to that token 0.01)"
    assert why(best, tokens) == f"chosen: {said}"
    assert why(best, tokens, asked=True) == said
