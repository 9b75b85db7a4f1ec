"""Name the ways to measure and rank the tokens that a word depends on."""

from typing import Literal, get_args

from regard.errors import RegardError

TokensBy = Literal["removal", "edges", "contribution", "weight"]
TOKENS_BY: tuple[TokensBy, ...] = get_args(TokensBy)


def check_tokens_by(tokens_by: object) -> None:
    """Raise RegardError for an unknown way."""
    if tokens_by not in TOKENS_BY:
        raise RegardError(f"tokens_by: given {tokens_by!r}, needs one of {', '.join(map(repr, TOKENS_BY))}")
