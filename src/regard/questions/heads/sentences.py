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
WHERE = {  # a table's name in a sentence
    "encoder": "In the encoder, ",
    "decoder": "In the decoder, ",
    "cross-attention": "In cross-attention, ",
    "random tokens, repeated": "On repeated random tokens, ",
    "tokens exchanged": "After tokens are shuffled, ",
}
ASKED = {"random tokens, repeated": "induction"}  # the score that a test is made for

HEAD, WEIGHT = "{where}layer {layer}, head {head} ", " (mean weight {value})."
TABLE: list[list[Template]] = [
    [
        ("There are no tokens {mean_of}, so there is no {name} score.", lambda n: n["empty"]),
        (
            HEAD + "attends to the same positions: similarity {value}, compared with {other} for the same tokens.",
            lambda n: n["name"] == "position",
        ),
        (
            HEAD + "follows the tokens: similarity {value}, compared with {other} for the same positions.",
            lambda n: n["name"] == "content",
        ),
        ("{where}no head clearly follows {name} more than {rival}.", None),
        (HEAD + "spreads its attention most: its mean entropy is {value:n} nats.", lambda n: n["name"] == "entropy"),
        (HEAD + "attends furthest, {value:n} tokens away on average.", lambda n: n["name"] == "distance"),
        (HEAD + "attends almost only to {target}" + WEIGHT, lambda n: n["value"] >= 0.95),
        (HEAD + "attends mostly to {target}" + WEIGHT, lambda n: n["value"] >= 0.5),
        (HEAD + "attends most to {target} of all heads" + WEIGHT, lambda n: n["value"] >= LOOKED),
        (
            "{where}no head attends by induction: the highest score is {value} (layer {layer}, head {head}).",
            lambda n: n["name"] == "induction",
        ),
        ("{where}no head attends much to {target}: at most {value} (layer {layer}, head {head}).", None),
        ("{where}no head attends to {target}.", None),
    ]
]


def of_heads(found: "Heads") -> list[str]:
    """State for each table the highest scores, each of another head; for a test made for a score, that score."""
    written = []
    for table, means in found.tables.items():
        where, count = WHERE.get(table, ""), max(1, MAX_SENTENCES // len(found.tables))
        names = [ASKED[table]] if ASKED.get(table) in means.scores else []
        if not names:
            best = {name: most_of(means, name) for name in means.scores if is_share(name) and MEANINGS[name].looks_at}
            led: dict[str, str] = {}
            for name in sorted((name for name in best if best[name]), key=lambda name: -best[name][0][1]):
                led.setdefault(best[name][0][0], name)  # special tokens and sinks are often the same tokens
            names = list(led.values())[:count]
        written += [score_sentence(means, name, where) for name in names]
    return written[:MAX_SENTENCES]


def score_sentence(means: HeadMeans, name: str, where: str = "") -> str:
    """State which head has most of a score."""
    rival = AGAINST.get(name) if "looked" in means.scores else None
    numbers: dict[str, Any] = {
        "where": where, "name": name, "target": MEANINGS[name].looks_at or "the shuffled tokens",
        "mean_of": MEANINGS[name].mean_of or "to score", "empty": bool(np.isnan(means.scores[name]).all()),
    }  # fmt: skip
    best = _ranked(means, name)
    if best:
        layer, head, value = best[0]
        numbers |= {"layer": layer, "head": head, "value": value}
    if rival:
        rows = {(row["layer"], row["head"]): row[rival] for row in means.rows()}
        numbers |= {"other": rows[best[0][:2]]} if best else {"rival": rival}
    (sentence,) = sentences(TABLE, numbers)
    return sentence


def of_scores(means: HeadMeans) -> list[str]:
    """Write one sentence per score, with its name."""
    return [f"{name}: {score_sentence(means, name)}" for name in means.scores]


def most_of(means: HeadMeans, name: str) -> list[tuple[str, float]]:
    """Return the heads with most of a score by their short names, with their scores: three at most, none of 0.00."""
    return [(short_head(layer, head), score) for layer, head, score in _ranked(means, name)[:NAMED]]


def _ranked(means: HeadMeans, name: str) -> list[tuple[int, int, float]]:
    """Rank heads by a score, or for position and content by their difference in heads that attend to these tokens.

    A head that attends everywhere evenly has much of both.
    """
    by = means.scores[name]
    if name in AGAINST and "looked" in means.scores:
        by = np.where(means.scores["looked"] >= LOOKED, by - means.scores[AGAINST[name]], np.nan)
    return means.best(name, int((np.nan_to_num(by, nan=-np.inf) >= LEAST).sum()), by=by)


def how_to_read(means: HeadMeans) -> str:
    """Explain the names of heads and the scores of a table."""
    if any(name in AGAINST for name in means.scores):
        return "Heads are listed by how far one score exceeds the other. L0H2 is layer 0, head 2."
    units = "".join(f", {name} in {MEANINGS[name].unit}" for name in means.scores if not is_share(name))
    return f"L0H2 is layer 0, head 2, and scores are mean attention weights from 0 to 1{units}."


def exactness_of_heads(found: "Heads") -> list[str]:
    """State which tokens the means are over, what read them, and what a store notes."""
    models = list(dict.fromkeys(means.model for means in found.tables.values() if means.model))
    read = f", read with {models[0]}" if models else ""
    notes = dict.fromkeys(note for means in found.tables.values() for note in means.notes)
    return [f"Means are over all tokens except special tokens and the first token of each text{read}.", *notes]
