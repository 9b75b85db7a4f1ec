"""Write the scores of every head, with what each means in a sentence."""

import math

from regard.explain.weights.head_means import OVER
from regard.explain.weights.head_scores import HeadScores
from regard.explain.weights.score_meanings import MEANINGS, tokens_counted
from regard.web.score_rules import Data


def head_scores_data(scores: HeadScores, text: int, calls: list[int]) -> Data:
    """Write the scores of a text's heads. text: its number. calls: the numbers of the rows' calls."""
    tables = scores.by_name()
    return {
        "text": text,
        "names": list(tables),
        "meanings": [
            f"{MEANINGS[name].says.removesuffix('.')} (here the mean of {_tokens(scores, name)})." for name in tables
        ],
        "calls": calls,
        "values": [[[_number(value) for value in row] for row in table.tolist()] for table in tables.values()],
    }


def _tokens(scores: HeadScores, name: str) -> str:
    """Of how many tokens a score is the mean."""
    return tokens_counted(getattr(scores, OVER.get(name, "queries")))


def _number(value: float) -> float | None:
    """A number that JSON can have, of six decimals; None for NaN."""
    return None if math.isnan(value) else round(value, 6)
