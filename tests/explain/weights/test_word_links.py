"""The sharpest link is the largest weight of any head on another word, its neighbours aside."""

import torch

from regard.explain.weights.word_links import WordLink, beyond_neighbours, other_words, sharpest_link
from regard.text.tokens import Token

WORDS = ["[CLS]", "a", "river", ",", "ba", "##nk", "on", "money", "."]
PLACES = [0, 0, 2, 7, 9, 11, 14, 17, 22]  # "a river, bank on money."
TOKENS = [
    Token(0, text, at, at + len(text.replace("##", "").replace("[CLS]", "")), None, text == "[CLS]")
    for text, at in zip(WORDS, PLACES, strict=True)
]
OWN = [4, 5]


def rows(*given: tuple[int, int, int, float]) -> dict[int, torch.Tensor]:
    """Two layers of two heads that give a hundredth to every token, and what is said to some."""
    weights = torch.full((2, 2, len(WORDS)), 0.01)
    for layer, head, token, weight in given:
        weights[layer, head, token] = weight
    return {1: weights[0], 3: weights[1]}  # of a trace that holds layers 1 and 3


def test_other_words_are_not_special_nor_marks_nor_sinks_nor_the_word() -> None:
    assert other_words(TOKENS, OWN) == [1, 2, 6, 7]
    assert other_words(TOKENS, OWN, sinks=[1]) == [2, 6, 7]


def test_the_largest_of_all_heads_is_named_with_layer_and_head() -> None:
    most = rows((0, 1, 2, 0.4), (1, 0, 7, 0.6))
    assert sharpest_link(most, TOKENS, OWN) == WordLink(3, 0, 7, "money", float(torch.tensor(0.6)))


def test_what_is_no_word_or_stands_beside_the_word_is_no_link() -> None:
    """[CLS], the word before, a comma between or not, its own tokens, the next word, a full stop, a sink."""
    larger = [(0, 0, token, 0.9) for token in (0, 2, 3, 4, 5, 6, 8)]
    found = sharpest_link(rows(*larger, (1, 1, 1, 0.7), (1, 1, 7, 0.3)), TOKENS, OWN, sinks=[1])
    assert found == WordLink(3, 1, 7, "money", float(torch.tensor(0.3)))


def test_pieces_of_a_neighbour_and_the_same_word_again_are_no_link() -> None:
    """The rest of a word that stands before it is as near as its last piece; a word that is said twice is the same."""
    pieces = [("rifle", 0), ("##d", 5), ("hearts", 7), ("it", 14), ("'", 16), ("s", 17), ("Hearts", 19), ("all", 26)]
    tokens = [Token(0, text, at, at + len(text.removeprefix("##")), None, False) for text, at in pieces]
    assert beyond_neighbours(tokens, [2]) == [7]
    assert beyond_neighbours(tokens, [7]) == [0, 1, 2, 3, 5]


def test_what_a_vocabulary_does_not_know_is_no_word() -> None:
    tokens = [Token(0, text, 2 * n, 2 * n + 1, None, False) for n, text in enumerate(("a", "b", "[UNK]", "d"))]
    assert other_words(tokens, [0]) == [1, 3]


def test_of_several_alike_the_first() -> None:
    found = sharpest_link(rows(), TOKENS, OWN)
    assert found is not None
    assert (found.layer, found.head, found.token) == (1, 0, 1)


def test_no_word_that_gets_anything_is_no_link() -> None:
    assert sharpest_link({1: torch.full((2, 4), 0.01)}, TOKENS[3:7], [1, 2]) is None
    assert sharpest_link({0: torch.zeros(2, len(WORDS))}, TOKENS, OWN) is None
    assert sharpest_link({0: torch.full((2, len(WORDS)), torch.nan)}, TOKENS, OWN) is None
