"""What is said of a score has to be true of its numbers, also where nothing stands out."""

from typing import Any

import pytest
import torch

from regard.capture.score_path import SideParts, Writer
from regard.questions.score.sentences import exactness_of_score, of_score
from regard.questions.score.sources import ScoreSources
from regard.text.tokens import encoded_ids


def made(query: Any, key: Any, others: Any, **changes: Any) -> ScoreSources:
    """A score of given parts, a row each, at scale 1."""
    writers = (Writer("token"), *(Writer("feed-forward", n) for n in range(60)))

    def side(rows: Any) -> SideParts:
        vectors = torch.tensor(rows, dtype=torch.float64)
        return SideParts(writers[: len(vectors)], vectors, vectors.sum(0), (1,))

    q, k, o = side(query), side(key), side(others)
    numbers: dict[str, Any] = {
        "query": "bank", "key": "river", "layer": 3, "head": 5, "part": None, "score": float(q.whole @ k.whole),
        "softcapped": None, "bias": 0.0, "weight": 0.25, "mean": float(q.whole @ o.whole), "seen": 11, "error": 0.0,
        "query_parts": q, "key_parts": k, "other_keys": o, "scale": 1.0, "tokens": {None: encoded_ids([1, 2]).tokens},
    }  # fmt: skip
    return ScoreSources(**(numbers | changes))


def test_pairs_that_carry_it_are_named_with_what_stands_against_it() -> None:
    found = made([[1, 0], [0, 1]], [[5, -1], [0, 2]], [[1, 0], [0, 1]])
    assert of_score(found) == [
        "In layer 3, head 5 “bank” gives “river” 0.25 of its attention: the score is 6.00, 4.00 above the mean (2.00) "
        "of the 11 tokens that it may look at.",
        "Of all 4 pairs of parts, what takes the score above the mean most is token embedding of “bank” × token "
        "embedding of “river” (+4.00) and layer 0, feed-forward of “bank” × layer 0, feed-forward of “river” (+1.00); "
        "layer 0, feed-forward of “bank” × token embedding of “river” (−1.00) stands most against it.",
        "What “river” holds beside what the other tokens hold makes +4.00, most by token embedding (+3.00) and layer "
        "0, feed-forward (+1.00).",
        "What “bank” holds makes +4.00, most by token embedding (+4.00).",
    ]


def test_a_score_below_the_mean() -> None:
    score, pairs, *_ = of_score(made([[1, 0], [0, 1]], [[-5, 0], [0, 2]], [[1, 0], [0, 1]], weight=0.01))
    assert "0.010 of its attention: the score is −3.00, 5.00 below the mean (2.00)" in score
    assert pairs.startswith(
        "Of all 4 pairs of parts, what takes the score below the mean most is token embedding of “b"
    )
    assert "(−6.00); layer 0, feed-forward of “bank” × layer 0, feed-forward" in pairs


def test_no_pair_that_stands_out_is_called_a_reason() -> None:
    torch.manual_seed(0)
    query, key, others = (torch.randn(40, 7).tolist() for _ in range(3))
    _, pairs, *_ = of_score(made(query, key, others))
    assert pairs.startswith("No pair of parts says why: of 1,600 the largest, ")
    assert "what takes" not in pairs


def test_a_token_that_may_look_at_one_alone() -> None:
    found = made([[1, 0]], [[5, 0]], [[5, 0]], seen=1, weight=1.0)
    assert of_score(found) == [
        "In layer 3, head 5 “bank” gives “river” 1.00 of its attention: there is no other token that it may look at, "
        "whatever the score."
    ]


def test_a_score_that_is_the_mean_need_not_be_that_of_all_keys() -> None:
    _, pairs, *_ = of_score(made([[1, 0]], [[5, 0]], [[5, 0]]))
    assert pairs == "No pair of parts takes the score above or below the mean."


def test_what_stands_against_a_side_is_not_said_to_make_it() -> None:
    """ "makes +1.00, most by token embedding (−6.00)" was said of parts that sum to +1."""
    said = of_score(made([[1], [1]], [[-3], [3.5]], [[0], [0]]))
    assert said[2].endswith(
        "makes +1.00, most by layer 0, feed-forward (+7.00); token embedding (−6.00) stands most against it."
    )


def test_how_exact_it_is() -> None:
    (said,) = exactness_of_score(made([[1]], [[1]], [[0]], error=3e-7))
    assert "within 3.0e-07 of the sum of their absolute values" in said


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"bias": -1.5}, "Before the softmax −1.50 is added to it, which is no part of the split."),
        ({"softcapped": 4.5}, "Before the softmax a softcap makes 4.50 of the score, which is no part of the split."),
    ],
)
def test_what_is_no_part_of_the_split(changes: dict[str, float], said: str) -> None:
    assert of_score(made([[1, 0]], [[5, 0]], [[1, 0]], **changes))[-1] == said


def test_cross_attention_is_called_so() -> None:
    assert of_score(made([[1, 0]], [[5, 0]], [[1, 0]], part="cross"))[0].startswith(
        "In cross-attention of layer 3, head 5"
    )
