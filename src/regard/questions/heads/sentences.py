"""Name the heads with the highest scores, and state in a few sentences what they attend to."""

from typing import TYPE_CHECKING, Any

import numpy as np

from regard.display.sentences import MAX_SENTENCES, Template, sentences
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import MEANINGS, is_share
from regard.explain.wording import short_head

if TYPE_CHECKING:
    from regard.questions.heads.answer import Heads

NAMED = 3  # heads of a score
LEAST = 0.005  # scores below it are printed as 0.00: no head is named for them
LOOKED = 0.1  # a head that attends less to the shuffled tokens is not named for how it follows them
AGAINST = {"position": "content", "content": "position"}  # the two ways to follow shuffled tokens
WHERE = {  # the beginning of a sentence about a table
    "encoder": "In the encoder, ", "decoder": "In the decoder, ", "cross-attention": "In cross-attention, ",
    "random tokens, repeated": "On repeated random tokens, ", "tokens exchanged": "After tokens are shuffled, ",
}  # fmt: skip
ASKED = {"random tokens, repeated": "induction"}  # the score that a test is made for

HEAD, WEIGHT = "{where}layer {layer}, head {head} ", " (mean weight {value})."
NONE = "There are no tokens {mean_of}, so there is no {name} score."
ONE = {  # scores that are no mean weights
    "position": HEAD + "attends to the same positions: similarity {value}, compared with {other} for the same tokens.",
    "content": HEAD + "follows the tokens: similarity {value}, compared with {other} for the same positions.",
    "entropy": HEAD + "spreads its attention most: its mean entropy is {value:n} nats.",
    "distance": HEAD + "attends furthest, {value:n} tokens away on average.",
}
SHARES: list[Template] = [
    ("{where}no head clearly follows {name} more than {rival}.", None),
    (HEAD + "attends almost only to {target}" + WEIGHT, lambda n: n["value"] >= 0.95),
    (HEAD + "attends mostly to {target}" + WEIGHT, lambda n: n["value"] >= 0.5),
    (HEAD + "attends to {target} more than any other head" + WEIGHT, lambda n: n["value"] >= LOOKED),
    ("{where}no head attends to {target} with more than {value} on average (layer {layer}, head {head}).", None),
    ("{where}no head attends to {target}.", None),
]


def of_heads(found: "Heads") -> list[str]:
    """State for each table the highest scores, each of another head, and for a test its own score."""
    written = []
    for table, means in found.tables.items():
        best = {name: most_of(means, name) for name in means.scores if is_share(name) and MEANINGS[name].looks_at}
        led: dict[str, str] = {}
        for name in sorted((name for name in best if best[name]), key=lambda name: -best[name][0][1]):
            led.setdefault(best[name][0][0], name)  # special tokens and sinks are often the same tokens
        names = [ASKED[table]] if ASKED.get(table) in means.scores else list(led.values())
        count = max(1, MAX_SENTENCES // len(found.tables))
        written += [score_sentence(means, name, WHERE.get(table, "")) for name in names[:count]]
    return written[:MAX_SENTENCES]


def score_sentence(means: HeadMeans, name: str, where: str = "") -> str:
    """State which head has most of a score."""
    target, mean_of, best = MEANINGS[name].looks_at, MEANINGS[name].mean_of, ranked_heads(means, name)
    numbers: dict[str, Any] = {"where": where, "name": name, "target": target or "the shuffled tokens"}
    numbers |= dict(zip(("layer", "head", "value"), best[0], strict=True)) if best else {}
    if name in AGAINST and best:
        numbers["other"] = {(row["layer"], row["head"]): row[AGAINST[name]] for row in means.rows()}[best[0][:2]]
    elif name in AGAINST:
        numbers["rival"] = AGAINST[name]
    if np.isnan(means.scores[name]).all():
        return NONE.format(mean_of=mean_of or "to score", name=name)
    first: list[Template] = [(ONE[name], None)] if name in ONE else []
    return sentences([[*first, *SHARES]], numbers)[0]


def most_of(means: HeadMeans, name: str) -> list[tuple[str, float]]:
    """Return the heads with most of a score by their short names, with their scores: three at most, none of 0.00."""
    return [(short_head(layer, head), score) for layer, head, score in ranked_heads(means, name)[:NAMED]]


def ranked_heads(means: HeadMeans, name: str) -> list[tuple[int, int, float]]:
    """Rank heads by a score, or for position and content by their difference in heads that attend to these tokens."""
    by = means.scores[name]
    if name in AGAINST:  # a head that attends everywhere evenly has much of both
        by = np.where(means.scores["looked"] >= LOOKED, by - means.scores[AGAINST[name]], np.nan)
    return means.best(name, int((np.nan_to_num(by, nan=-np.inf) >= LEAST).sum()), by=by)
