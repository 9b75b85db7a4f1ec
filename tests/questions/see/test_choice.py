"""The lines say what the numbers are, whether the choice was made or asked for, and what is larger."""

import torch

from regard.explain.texts.highlights import Link
from regard.explain.weights.specific_weights import SpecificWeight
from regard.questions.see.choice import strongest_links, word_choice
from regard.text.tokens import Token

TOKENS = [Token(n, text, 0, 0, n, False) for n, text in enumerate([" dog", "gy", " the\n", "x"])]
BEST = SpecificWeight(2, 1, (0, 1), 2, 0.7512, 0.204, 0.0149, 1.3)


def rows(*heads: list[float]) -> torch.Tensor:
    return torch.tensor(heads)


def test_the_line_of_a_word() -> None:
    said = (
        "“doggy” gives “the” 0.75 (others at that distance 0.20, to that token 0.015), of other words most beyond these"
    )
    most = rows([0.1, 0.2, 0.3, 0.4], [0.05, 0.1, 0.75, 0.1])
    assert word_choice(BEST, most, TOKENS) == f"chosen: {said}, of all heads; which is its largest weight here"
    larger = rows([0.1, 0.02, 0.03, 0.85], [0.05, 0.1, 0.75, 0.1])
    largest = "its largest weight here: “x” 0.85, head 0"
    assert word_choice(BEST, larger, TOKENS, layer=2) == f"chosen: {said}, of layer 2's heads; {largest}"
    assert word_choice(BEST, larger, TOKENS, layer=2, head=1) == f"{said}; which is its largest weight here"
    assert "these, of head 1 in all layers; " in word_choice(BEST, larger, TOKENS, head=1)
    assert "these, of head 1 in all layers that are held; " in word_choice(BEST, larger, TOKENS, head=1, held=False)
    assert "these, of all heads of the layers held; " in word_choice(BEST, larger, TOKENS, held=False)


def test_the_strongest_link_of_all_stands_beside_that_of_the_head() -> None:
    own, first = Link(2, 1, 0, " dog", 3, "x", 0.72), Link(1, 0, 3, "x", 0, " dog", 0.83)
    assert strongest_links(own, [first, own], TOKENS) == (
        "framed: “dog” looks at “x” 0.72, its strongest link of words that are no neighbours; of all heads “x” looks "
        "at “dog” 0.83, layer 1, head 0"
    )
    assert strongest_links(own, [own], TOKENS).endswith("no neighbours, and that of all heads")
    assert strongest_links(None, [], TOKENS) == ""
