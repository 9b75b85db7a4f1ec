"""Name tokens, states and tables, and write ranges, as all tables of a summary do."""

from collections.abc import Sequence

from regard.explain.findings.wording import number
from regard.explain.vectors.neutral import Neutral
from regard.text.tokens import Token


def called(token: int, tokens: Sequence[Token]) -> str:
    """Name a token by its text, with its number where the text has another of the same."""
    text = tokens[token].text
    return f"{text} ({token})" if [each.text for each in tokens].count(text) > 1 else text


def ranged(neutral: Neutral, digits: int) -> str:
    """Write the mean of cosines in neutral sentences, and their range."""
    found = [each[-1] for each in (neutral.mean, neutral.low, neutral.high)]
    mean, low, high = ("–" if each is None else number(each, f".{digits}f") for each in found)
    return f"{mean} ({low} to {high})"


def state_name(n: int) -> str:
    """Name a hidden state by the layer that it enters or leaves."""
    return "enters layer 0" if n == 0 else f"after layer {n - 1}"


def name_of(table: str, side: str) -> str:
    """Name a table of texts, or of their targets."""
    return table if side == "text" else f"{table} of targets"
