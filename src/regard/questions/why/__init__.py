"""Rank the tokens and heads that affect a word, by ablating each of them."""

from typing import Literal, get_args

TokensBy = Literal["removal", "edges", "contribution", "weight"]  # the measure that ranks tokens
TOKENS_BY: tuple[TokensBy, ...] = get_args(TokensBy)
