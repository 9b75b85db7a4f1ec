"""Say what tokens can be ranked by where a word is explained, and how well each predicts what removing them does.

The figures are those of docs/faithfulness.md: Spearman's rank correlation with the measured effect of removing each
word, the mean over sentences; of how far a word's vector moves in MiniLM, and of the log-probability of the
next token in SmolLM2 and opus-mt.
"""

from typing import Literal, get_args

from regard.errors import RegardError
from regard.explain.wording import number

TokensBy = Literal["removal", "edges", "contribution", "weight"]
Measure = Literal["effect", "divergence"]
TOKENS_BY: tuple[TokensBy, ...] = get_args(TokensBy)
DEFAULT: TokensBy = "removal"
MODELS: dict[Measure, tuple[str, ...]] = {"effect": ("MiniLM",), "divergence": ("SmolLM2", "opus-mt")}
AGREEMENTS: dict[Measure, dict[TokensBy, tuple[float, ...]]] = {
    "effect": {"edges": (0.91,), "contribution": (0.86,), "weight": (0.82,)},
    "divergence": {"edges": (0.4, 0.5), "contribution": (0.24, 0.46), "weight": (0.23, 0.52)},
}
SAID: dict[TokensBy, str] = {
    "removal": "the measured effect of removing each token",
    "edges": "the measured effect of cutting the word's attention to each token",
    "contribution": "contribution, an estimate of the effect of removing each token",
    "weight": "attention weight, an estimate of the effect of removing each token",
}


def check_tokens_by(given: object) -> None:
    """Raise RegardError for what tokens cannot be ranked by."""
    if given not in TOKENS_BY:
        raise RegardError(f"tokens_by: given {given!r}, needs one of {', '.join(map(repr, TOKENS_BY))}")


def token_ranking_reason(tokens_by: TokensBy, by: Measure) -> str:
    """Say in one line what tokens are ranked by, and how well each way ranks them as removing them does.

    by: what is measured: the "effect" on a word's contextual embedding, or the "divergence" of the next token.
    """
    known = AGREEMENTS[by]
    figures = ", ".join(f"{name} {' and '.join(f'{number(each)}' for each in known[name])}" for name in known)
    where = f"Rank correlations with removal in {' and '.join(MODELS[by])}"
    return f"Tokens are ranked by {SAID[tokens_by]}. {where}: {figures}."
