"""What is said of the heads' scores: which have most, over how many tokens, and that none has any."""

import numpy as np

from regard.display.answer import Read
from regard.explain.weights.head_means import HeadMeans
from regard.questions.heads.answer import Heads
from regard.questions.heads.sentences import (
    counts_finding,
    how_to_read,
    most_of,
    most_telling,
    of_scores,
    score_finding,
    tokens_counted_by_heads,
)

COUNTS = {"queries": 1234, "duplicates": 56, "inductions": 1}


def made(**scores: list[list[float]]) -> HeadMeans:
    return HeadMeans({name: np.array(table) for name, table in scores.items()}, COUNTS)


def test_a_score_that_is_zero_everywhere_is_no_heads() -> None:
    """ "Most of it have heads L0H0 (0.00), L0H1 (0.00), L0H2 (0.00)" was said of it."""
    found = made(induction=[[0.0, 0.0, 0.0]], duplicate=[[0.004, 0.0, np.nan]], special=[[0.0, 0.3, 0.004]])
    assert most_of(found, "induction") == most_of(found, "duplicate") == []
    assert of_scores(found) == [
        "induction: No head has any of it: it is 0 everywhere, over 1 token.",
        "duplicate: No head has as much as 0.005 of it, over 56 tokens.",
        "special: Head L0H1 (0.30) has most of it; the mean of all heads is 0.10, over 1,234 tokens.",
    ]
    assert tokens_counted_by_heads(found, "induction") == "1 token"


def test_no_tokens_and_fewer_tokens() -> None:
    found = made(induction=[[np.nan, np.nan]], previous=[[0.5, 0.25]])
    assert "with another token behind them, and so no number" in score_finding(found, "induction")
    assert counts_finding(found) == "The scores are means over 1,234 tokens (induction over 1)."


def test_position_and_content_are_told_one_against_the_other() -> None:
    found = made(position=[[1.0, 0.9, 0.9]], content=[[1.0, 0.2, 0.1]], looked=[[1.0, 0.5, 0.05]])
    start = "Of 2 heads that give the exchanged tokens 0.1 of their attention or more"
    assert score_finding(found, "position") == (
        f"{start}, head L0H1 (0.90 against 0.20) follows position most above content; the mean of all heads is 0.93, "
        "over 1,234 tokens."
    )
    assert score_finding(found, "content").startswith(f"{start}, none follows content more than position")


def test_findings_begin_with_the_largest_shares_each_of_another_head() -> None:
    """ "The scores are means over 12 tokens" was all that was found."""
    found = made(
        previous=[[0.9, 0.2]], same=[[0.8, 0.1]], special=[[0.0, 0.6]], induction=[[0.0, 0.0]], distance=[[9.0, 3.0]]
    )
    told = [
        "Previous (the token before): heads L0H0 (0.90) and L0H1 (0.20) have most of it; the mean of all heads is "
        "0.55, over 1,234 tokens.",
        "Special (special tokens): head L0H1 (0.60) has most of it; the mean of all heads is 0.30, over 1,234 tokens.",
    ]
    assert most_telling(found, 3) == told
    assert Heads({"texts": found}).findings() == [*told, counts_finding(found)]
    one = Heads({"texts": found}, about=Read((("a text", None),))).findings()
    assert one[-1].startswith("In one text a head may do something by chance")
    both = Heads({"texts": found, "a test": found}).findings()
    assert both[:2] == [f"Texts: {each}" for each in told]
    assert both[-1] == f"A test: {counts_finding(found)}"


def test_how_to_read_names_the_units_of_the_scores_that_there_are() -> None:
    """ "Entropy is in nats, distance in tokens" stood under tables that have neither."""
    first = "L0H2 is head 2 of layer 0: both are numbered from 0; "
    assert how_to_read(made(previous=[[0.5]])) == f"{first}scores are shares of a token's attention, from 0 to 1."
    assert how_to_read(made(position=[[0.5]], content=[[0.5]])) == f"{first}scores are from 0 to 1."
    assert how_to_read(made(same=[[0.5]], entropy=[[0.5]], distance=[[2.0]])) == (
        f"{first}scores are shares of a token's attention, from 0 to 1; entropy is in nats and distance is in tokens."
    )
