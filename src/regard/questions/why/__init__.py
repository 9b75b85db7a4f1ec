"""Rank the tokens and heads that affect a word by ablating each of them."""
