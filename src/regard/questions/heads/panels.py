"""Show the scores of heads: a grid per score, the heads with most of each, and all heads."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.display.panels import Cell, Column, Heat, Panel, Table
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import ALIKE, MEANINGS, SHARE, is_share
from regard.explain.wording import capital, count_of_tokens, number, short_head
from regard.questions.heads.sentences import AGAINST, LOOKED, most_of, score_sentence

if TYPE_CHECKING:
    from regard.questions.heads.answer import Heads


def of_heads(found: "Heads") -> list[Panel]:
    """Show of each table a grid for each score, an overview, and all numbers; all shares have one scale."""
    several = len(found.tables) > 1
    shares = [
        value
        for means in found.tables.values()
        for name in means.scores
        if is_share(name)
        for value in _known_scores_of_heads(means.scores[name])
    ]
    panels: list[Panel] = []
    for name, means in found.tables.items():
        of = f"{name}: " if several else ""
        group = name if several else ""
        own = [_score_grid(means, score, of, group, max(shares, default=0.0)) for score in means.scores
               if score != "sinks" or np.any(means.scores[score] != 0)]  # fmt: skip
        panels += [replace(each, tab=capital(group)) for each in (*own, _overview_of_heads(means, of), _all(means, of))]
    return panels


def _overview_of_heads(means: HeadMeans, of: str) -> Table:
    """List the heads with most of each score, on a page with the meaning of the score."""
    rows: list[list[Cell]] = []
    for score in means.scores:
        known, meaning = _known_scores_of_heads(means.scores[score]), MEANINGS[score]
        if meaning.looks_at:
            most = ", ".join(f"{head} {number(value)}" for head, value in most_of(means, score)) or "none"
            mean = float(np.mean(known)) if known else None
            heads = most if known else "no such token"
            rows.append([score, meaning.looks_at, heads, mean, means.count(score), meaning.says])
    columns = [
        Column("score"), Column("attends to"), Column("highest heads"), Column("mean", 2),
        Column("tokens", 0, detail=True), Column("meaning", detail=True),
    ]  # fmt: skip
    title = f"{capital(of)}{'h' if of else 'H'}eads with the highest scores, {count_of_tokens(means.counts['queries'])}"
    units = "".join(f", {name} in {MEANINGS[name].unit}" for name in means.scores if not is_share(name))
    note = f"L0H2 is layer 0, head 2, and scores are mean attention weights from 0 to 1{units}."
    if any(name in AGAINST for name in means.scores):
        note = "Heads are listed by how far one score exceeds the other. L0H2 is layer 0, head 2."
    return Table(name=f"{of}Overview", title=title, columns=columns, rows=rows, screen=True, note=note)


def _score_grid(means: HeadMeans, score: str, of: str, group: str, largest: float) -> Heat:
    """Draw one score of every head."""
    values, unit = means.scores[score], MEANINGS[score].unit
    what = {SHARE: "mean attention weight", ALIKE: "similarity of attention"}.get(unit, unit)
    looked = means.scores["looked"] if score in AGAINST and "looked" in means.scores else np.ones(values.shape)
    grey = [(row, head) for row, head in np.argwhere(~(looked >= LOOKED) & ~np.isnan(values)).tolist()]
    heads = "1 grey head attends" if len(grey) == 1 else f"{len(grey)} grey heads attend"
    second = f"{heads} with less than {number(LOOKED)} to these tokens." if grey else score_sentence(means, score)
    return Heat(
        name=f"{of}{score}", title=f"{score}: {what}, {count_of_tokens(means.count(score))}",
        note=f"{MEANINGS[score].says} {second}", grey=grey,
        rows=[f"layer {means.layer(n)}" for n in range(values.shape[0])],
        columns=[f"head {n}" for n in range(values.shape[1])], axes=("layer", "head"),
        values=[[None if value != value else float(value) for value in row] for row in values], unit=unit,
        largest=largest if is_share(score) else None, picture=True, group=group,
        unbounded=not is_share(score),
    )  # fmt: skip


def _all(means: HeadMeans, of: str) -> Table:
    rows: list[list[Cell]] = [
        [short_head(row["layer"], row["head"]), *(float(str(row[name])) for name in means.scores)]
        for row in means.rows()
    ]
    return Table(
        name=f"{of}All heads", title="Scores of every head", rows=rows,
        columns=[Column("head"), *(Column(name, 2, unbounded=not is_share(name)) for name in means.scores)],
        note="Click a column name to sort.",
    )  # fmt: skip


def _known_scores_of_heads(values: np.ndarray) -> list[float]:
    """Return the scores that aren't NaN."""
    return [float(value) for value in values.ravel() if value == value]
