"""Write the scores of every head, with what each means in a sentence."""

import math

from regard.explain.weights.head_means import OVER
from regard.explain.weights.head_scores import HeadScores
from regard.web.score_rules import Data

MEANINGS = {
    "previous": "How much a token attends to the token before it.",
    "next": "How much a token attends to the token after it.",
    "same": "How much a token attends to itself.",
    "special": "How much of its attention a token gives to special tokens such as [CLS].",
    "first": "How much a token attends to the first token of the text.",
    "sinks": "How much of its attention a token gives to attention sinks, which take it whatever they mean.",
    "duplicate": "How much a token attends to earlier tokens that are the same as it.",
    "induction": "How much a token attends to what followed the same token earlier in the text.",
}


def head_scores_data(scores: HeadScores, text: int, calls: list[int]) -> Data:
    """Write the scores of a text's heads. text: its number. calls: the numbers of the rows' calls."""
    tables = scores.by_name()
    return {
        "text": text,
        "names": list(tables),
        "meanings": [
            f"{MEANINGS[name].removesuffix('.')} (here the mean of {_tokens(scores, name)})." for name in tables
        ],
        "calls": calls,
        "values": [[[_number(value) for value in row] for row in table.tolist()] for table in tables.values()],
    }


def _tokens(scores: HeadScores, name: str) -> str:
    """Of how many tokens a score is the mean."""
    count = getattr(scores, OVER.get(name, "queries"))
    return "1 token alone" if count == 1 else f"{count:,} tokens"


def _number(value: float) -> float | None:
    """A number that JSON can have, of six decimals; None for NaN."""
    return None if math.isnan(value) else round(value, 6)
