"""Say of each score of the heads which have most of it, over how many tokens, and where no head has any.

Findings begin with the shares of attention that a head has most of, each led by another head.

Terminal, page, picture and JSON name heads by `most_of`, and count tokens by `tokens_counted_by_heads`.
"""

from typing import TYPE_CHECKING

import numpy as np

from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import MEANINGS, is_share
from regard.explain.wording import capital, count_of_tokens, listed, number, short_head

if TYPE_CHECKING:
    from regard.questions.heads.answer import Heads

NAMED = 3  # heads of a score
TOLD = 3  # scores that findings begin with, of one table
TOLD_OF_EACH = 2  # of several tables
LEAST = 0.005  # scores below it are printed as 0.00: no head is named for them
LOOKED = 0.1  # how much a head has to look at tokens that were exchanged, to be named for how it follows them
NUMBERED = "L0H2 is head 2 of layer 0: both are numbered from 0"
ALL = "all: the mean of all heads"
ONE_TEXT = "In one text a head may do something by chance: the mean over many says what it does as a rule."
MEAN_OF = "Means are over all tokens that are not special and not the first of their text, each counted once."
AGAINST = {"position": "content", "content": "position"}  # two ways to follow a token: the one beside the other


def of_heads(found: "Heads") -> list[str]:
    """Say of each table what a head does most, over how many tokens its scores are means, and what else is to be known.

    Where one text was read, that it is one.
    """
    several = len(found.tables) > 1
    told = []
    for name, means in found.tables.items():
        of = f"{capital(name)}: " if several else ""
        told += [f"{of}{said}" for said in most_telling(means, TOLD_OF_EACH if several else TOLD)]
        told += [f"{of}{counts_finding(means)}", *means.notes]
    return [*told, *([ONE_TEXT] if len(found.about.texts) == 1 else [])]


def most_telling(found: HeadMeans, count: int) -> list[str]:
    """Sentences of so many scores, those whose best head has the largest share of all.

    Of scores that are led by the same head the first alone is told: special tokens and sinks are often one.
    """
    best = {name: most_of(found, name) for name in found.scores if is_share(name) and MEANINGS[name].looks_at}
    ranked = sorted((name for name in best if best[name]), key=lambda name: -best[name][0][1])
    led: dict[str, str] = {}
    for name in ranked:
        led.setdefault(best[name][0][0], name)
    return [_titled_finding(found, name) for name in list(led.values())[:count]]


def _titled_finding(found: HeadMeans, name: str) -> str:
    """The sentence of a score, with its name and what a head looks at that has much of it."""
    said = score_finding(found, name)
    return f"{capital(name)} ({MEANINGS[name].looks_at}): {said[:1].lower()}{said[1:]}"


def how_to_read(found: HeadMeans) -> str:
    """Say how heads are numbered, and what the numbers of the scores are that there are, in one sentence."""
    parts = [capital(NUMBERED)]
    if any(map(is_share, found.scores)):
        compared = any(name in AGAINST for name in found.scores)
        parts.append("scores are from 0 to 1" if compared else "scores are shares of a token's attention, from 0 to 1")
    others = [f"{name} is in {MEANINGS[name].unit}" for name in found.scores if not is_share(name)]
    return "; ".join([*parts, *([listed(others)] if others else [])]) + "."


def exactness_of_heads(found: "Heads") -> list[str]:
    """Say how heads are numbered, what read the texts, what is averaged, and what a score does not say."""
    models = dict.fromkeys(means.model for means in found.tables.values() if means.model)
    lines = [f"Read with {model}." for model in models]
    lines += [f"{capital(NUMBERED)}; {ALL}.", MEAN_OF]
    if any("position" in means.scores for means in found.tables.values()):
        lines.append("Under position and content stand the heads that follow the one most above the other.")
    return [*lines, "A score says where a head looks, not what that is good for."]


def of_scores(found: HeadMeans) -> list[str]:
    """Write one sentence a score, its name before it."""
    return [f"{name}: {score_finding(found, name)}" for name in found.scores]


def score_finding(found: HeadMeans, name: str) -> str:
    """Say which heads have most of a score, the mean of all, and over how many tokens: one sentence."""
    values = found.scores[name]
    known = values[values == values]
    if not known.size:
        return f"There are no tokens {MEANINGS[name].mean_of or 'that it could be of'}, and so no number."
    best, over = most_of(found, name), f"over {tokens_counted_by_heads(found, name)}"
    mean = f"the mean of all heads is {number(known.mean())}, {over}"
    if name in AGAINST and "looked" in found.scores:
        return _one_against_the_other(found, name, best, mean)
    if not best:
        most = float(known.max())
        none = "No head has any of it: it is 0 everywhere" if most == 0 else f"No head has as much as {LEAST} of it"
        return f"{none}, {over}."
    named = listed([f"{head} ({number(score)})" for head, score in best])
    return f"{_head_or_heads(best)} {named} {'has' if len(best) == 1 else 'have'} most of it; {mean}."


def most_of(found: HeadMeans, name: str) -> list[tuple[str, float]]:
    """Find the heads with most of a score, by their short names, with their numbers: three at most, none of 0.00.

    For position and content they are the heads that follow the one most above the other, of those that look at the
    tokens that were exchanged: a head that looks everywhere evenly is alike in both.
    """
    ranked = _ranked(found, name)
    best = found.best(name, found.scores[name].size, by=ranked)
    above = found.scores[name] if ranked is None else ranked
    count = int((np.nan_to_num(above, nan=-np.inf) >= LEAST).sum())
    return [(short_head(layer, head), score) for layer, head, score in best[: min(NAMED, count)]]


def tokens_counted_by_heads(found: HeadMeans, name: str) -> str:
    """Over how many tokens a score is a mean, in words."""
    return count_of_tokens(found.count(name))


def counts_finding(found: HeadMeans) -> str:
    """Over how many tokens the scores are means, those of fewer named."""
    fewer = [name for name in found.scores if found.count(name) != found.counts["queries"]]
    apart = f" ({listed([f'{name} over {found.count(name):,}' for name in fewer])})" if fewer else ""
    return f"The scores are means over {count_of_tokens(found.counts['queries'])}{apart}."


def _ranked(found: HeadMeans, name: str) -> np.ndarray | None:
    """By what heads are ranked, (layers, H), where it is not by the score itself."""
    if name not in AGAINST or "looked" not in found.scores:
        return None
    more = found.scores[name] - found.scores[AGAINST[name]]
    return np.where(found.scores["looked"] >= LOOKED, more, np.nan)


def _one_against_the_other(found: HeadMeans, name: str, best: list[tuple[str, float]], mean: str) -> str:
    other = AGAINST[name]
    looking = int((found.scores["looked"] >= LOOKED).sum())
    of = f"Of {looking:,} heads that give the exchanged tokens {LOOKED} of their attention or more"
    if not best:
        return f"{of}, none follows {name} more than {other}; {mean}."
    rows = {short_head(row["layer"], row["head"]): float(str(row[other])) for row in found.rows()}
    named = f"{_head_or_heads(best).lower()} " + listed(
        [f"{head} ({number(score)} against {number(rows[head])})" for head, score in best]
    )
    return f"{of}, {named} {'follows' if len(best) == 1 else 'follow'} {name} most above {other}; {mean}."


def _head_or_heads(best: list[tuple[str, float]]) -> str:
    return "Head" if len(best) == 1 else "Heads"
