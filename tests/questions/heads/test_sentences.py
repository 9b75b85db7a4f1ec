"""What is said of the heads' scores: which have most, over how many tokens, and that none has any."""

import numpy as np

from regard.explain.weights.head_means import HeadMeans
from regard.questions.heads.sentences import counted, counts_finding, most_of, of_scores, score_finding

COUNTS = {"queries": 1234, "duplicates": 56, "inductions": 1}


def made(**scores: list[list[float]]) -> HeadMeans:
    return HeadMeans({name: np.array(table) for name, table in scores.items()}, COUNTS)


def test_a_score_that_is_zero_everywhere_is_no_heads() -> None:
    """ "Most of it have heads 0.0 (0.00), 0.1 (0.00), 0.2 (0.00)" was said of it."""
    found = made(induction=[[0.0, 0.0, 0.0]], duplicate=[[0.004, 0.0, np.nan]], special=[[0.0, 0.3, 0.004]])
    assert most_of(found, "induction") == most_of(found, "duplicate") == []
    assert of_scores(found) == [
        "induction: No head has any of it: it is 0 everywhere, over 1 token alone.",
        "duplicate: No head has as much as 0.005 of it, over 56 tokens.",
        "special: Head 0.1 (0.30) has most of it; the mean of all heads is 0.10, over 1,234 tokens.",
    ]
    assert counted(found, "induction") == "1 token alone"


def test_no_tokens_and_fewer_tokens() -> None:
    found = made(induction=[[np.nan, np.nan]], previous=[[0.5, 0.25]])
    assert "with another token behind them: there is no number" in score_finding(found, "induction")
    assert counts_finding(found) == "The scores are means over 1,234 tokens (induction over 1)."


def test_position_and_content_are_told_one_against_the_other() -> None:
    found = made(position=[[1.0, 0.9, 0.9]], content=[[1.0, 0.2, 0.1]], looked=[[1.0, 0.5, 0.05]])
    start = "Of 2 heads that give the exchanged tokens 0.1 of their attention or more"
    assert score_finding(found, "position") == (
        f"{start}, head 0.1 (0.90 against 0.20) follows position most above content; the mean of all heads is 0.93, "
        "over 1,234 tokens."
    )
    assert score_finding(found, "content").startswith(f"{start}, none follows content more than position")
