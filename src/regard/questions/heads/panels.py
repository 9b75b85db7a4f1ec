"""What every head's attention follows, as panels: a grid a score, heads with most of each, and all."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from regard.display.panels import Cell, Column, Heat, Panel, Table
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import ALIKE, MEANINGS, SHARE, is_share
from regard.explain.wording import capital, number, short_head
from regard.questions.heads.sentences import (
    AGAINST,
    LOOKED,
    how_to_read,
    most_of,
    score_finding,
    tokens_counted_by_heads,
)

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
    """Of each score the heads with most of it; on a page also what the score is."""
    rows: list[list[Cell]] = []
    for score in means.scores:
        known, meaning = _known_scores_of_heads(means.scores[score]), MEANINGS[score]
        if not meaning.looks_at:
            continue
        most = most_of(means, score)
        told = ", ".join(f"{head} {number(value)}" for head, value in most) or "– (no head does)"
        mean = float(np.mean(known)) if known else None
        rows.append([score, meaning.looks_at, told if known else "– (no token could)", mean, meaning.says])
    columns = [
        Column("score"), Column("looks at …"), Column("most: head, mean"), Column("all", 2),
        Column("what it is", detail=True),
    ]  # fmt: skip
    title = "the heads with most of each score"
    return Table(
        name=f"{of}Overview", title=capital(f"{of}{title}"), columns=columns, rows=rows, screen=True,
        note=how_to_read(means),
    )  # fmt: skip


def _score_grid(means: HeadMeans, score: str, of: str, group: str, largest: float) -> Heat:
    """One score of every head."""
    values, unit = means.scores[score], MEANINGS[score].unit
    what = {SHARE: "share of attention", ALIKE: "how alike attention stays"}.get(unit, unit)
    looked = means.scores["looked"] if score in AGAINST and "looked" in means.scores else np.ones(values.shape)
    grey = [
        (row, head) for row, head in np.argwhere(~(looked >= LOOKED)).tolist() if values[row, head] == values[row, head]
    ]
    left_out = f" Grey: {len(grey)} that give{'s' * (len(grey) == 1)} them less, named nowhere." if grey else ""
    return Heat(
        name=f"{of}{score}", title=f"{score}: {what}, {tokens_counted_by_heads(means, score)}",
        note=f"{MEANINGS[score].says} {score_finding(means, score)}{left_out}", grey=grey,
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
        name=f"{of}All heads", title="Every head with every score", rows=rows,
        columns=[Column("head"), *(Column(name, 2, unbounded=not is_share(name)) for name in means.scores)],
        note="One row a head; a click on a column's name sorts by it.",
    )  # fmt: skip


def _known_scores_of_heads(values: np.ndarray) -> list[float]:
    """The numbers that there are."""
    return [float(value) for value in values.ravel() if value == value]
