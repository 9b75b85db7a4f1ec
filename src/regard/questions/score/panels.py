"""One attention score as panels: the pairs of parts that make it, as grids with the sums of both sides, and a list."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Heat, Panel, Sums, Table
from regard.explain.causes.score_writers import By, largest_writers_and_rest
from regard.explain.wording import listed, signed
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.score.sources import ScoreSources

MOST = 96  # parts of a side that a grid has by themselves; the others are one row, or column, together
FEW = 48  # parts of a side up to which a picture has each writer
LISTED = 300  # pairs of the list
TAB = "The score"  # of a page, which has all of it
GROUPS: tuple[tuple[By, str, str], ...] = (
    ("source", "By source token", "the token that attention read them from, over all heads and layers"),
    ("layer", "By layer", "the layer that wrote them"),
    ("writer", "By writer", "what wrote them: embeddings, each head, each feed-forward layer, each layer's biases"),
    ("kind", "By kind", "the kind of what wrote them"),
)  # fmt: skip
CARRIED = re.compile(r"attention from (?:“(.*)”|(a blank|a line break)) \((\d+)\)", re.DOTALL)


def of_score(found: "ScoreSources") -> list[Panel]:
    """Show the pairs by each way of grouping parts, and the largest; a picture is by writers, or layers of many.

    Ways that make the same parts are shown once, and none by source token where nothing was read from one.
    """
    beside = _score_less_other_keys(found)
    few = max(len(names) for names in beside.table()[:2]) <= FEW
    shown: dict[str, list[tuple[By, str, str]]] = {}
    for way in GROUPS:
        queries, keys, scores = beside.table(way[0])
        if way[0] == "source" and not any(map(CARRIED.fullmatch, [*queries, *keys])):
            continue
        shown.setdefault(str((queries, keys, scores.tolist())), []).append(way)
    ways = list(shown.values())
    drawn: By = "writer" if few else "layer"
    grids = [_pairing(found, *own[0], same=own[1:], drawn=drawn in {by for by, *_ in own}) for own in ways]
    return [*grids, _score_pairs_table(found), _sides(found, [own[0] for own in ways])]


def _sides(found: "ScoreSources", ways: Sequence[tuple[By, str, str]]) -> Table:
    """What each part of each side brings with all of the other, by every way of grouping them, of fewer parts first."""
    beside = found.beside_the_others()
    sides = [(name[3:], beside.side("query", by), beside.side("key", by)) for by, name, _ in ways]
    rows: list[list[Cell]] = [
        [name, *(query[n] if n < len(query) else ("", None)), *(key[n] if n < len(key) else ("", None))]
        for name, query, key in sorted(sides, key=lambda each: len(each[1]))
        for n in range(max(len(query), len(key)))
    ]
    columns = [
        Column("by"), Column(f"of {quoted(found.query)}"), Column("difference", 2, signed=True),
        Column(f"of {quoted(found.key)}"), Column("difference", 2, signed=True),
    ]  # fmt: skip
    title = "Each side with all of the other, by each way of grouping its parts"
    return Table(name="Each side", title=title, columns=columns, rows=rows, tab=TAB)


def short_score_part_name(name: str) -> str:
    """A part's name as a label: of a source token, the token and its number."""
    found = CARRIED.fullmatch(name)
    return name if found is None else f"{found[1] or found[2]} {found[3]}"


def _score_less_other_keys(found: "ScoreSources") -> "ScoreSources":
    """The difference from the mean of the other keys, where there are others."""
    return found.beside_the_others() if found.seen > 1 else found


def _pairing(
    found: "ScoreSources", by: By, name: str, what: str, *, same: Sequence[tuple[By, str, str]], drawn: bool
) -> Heat:
    """A grid of all pairs. same: the ways of grouping that make the same grid; drawn: whether it is the picture."""
    shown = _score_less_other_keys(found)
    queries, keys, scores = shown.table(by)
    others = [len(names) - MOST + 1 if len(names) > MOST else 0 for names in (queries, keys)]
    queries, scores = largest_writers_and_rest(queries, scores, MOST)
    keys, across = largest_writers_and_rest(keys, scores.T, MOST)
    scores = across.T
    less = f", less what the mean of all {found.seen} keys holds" if shown.difference else ""
    is_sum = (
        f"by which the score, {signed(found.score)}, is {'above' if shown.score >= 0 else 'below'} the mean, "
        f"{signed(found.mean)}, of the {found.seen} tokens that it may look at"
        if shown.difference
        else "the score"
    )
    caption = f"All cells sum to {signed(shown.score)}, {is_sum}."
    alike = " What all of them get alike moves no attention." if shown.difference else ""
    note = (
        f"Parts are grouped by {what}. A cell is the product of one part of the query with one part of the key: "
        f"red speaks for looking there, blue against it. {caption}{alike} The bars are the sums of rows and columns: "
        "what a part does with all of the other side."
    )
    if same:
        note = f"{listed([other for _, other, _ in same])} the grid is the same. {note}"
    if any(others):
        note += f" Of a side with more than {MOST} parts those that matter least are its last row or column, together."
    title = f"What makes the score of {quoted(found.query)} for {quoted(found.key)}, {name[0].lower()}{name[1:]}"
    return Heat(
        name=name, title=title, note=note, caption=caption, others=(others[0], others[1]),
        rows=[short_score_part_name(each) for each in queries], columns=[short_score_part_name(each) for each in keys],
        values=scores.tolist(), signed=True, unit="adds", picture=drawn, tab=TAB,
        axes=(f"what {quoted(found.query)} holds (query)", f"what {quoted(found.key)} holds (key){less}"),
        sums=Sums(
            rows=scores.sum(1).tolist(), columns=scores.sum(0).tolist(), all=float(scores.sum()),
            across="with all of the key", down="all of the query", name="all of the query · all of the key",
        ),
    )  # fmt: skip


def _score_pairs_table(found: "ScoreSources") -> Table:
    """The largest pairs of writers, each also as it is in the score itself."""
    shown = _score_less_other_keys(found)
    queries, keys, own = found.table()
    rows_of, columns_of = ({name: n for n, name in enumerate(names)} for names in (queries, keys))
    rows: list[list[Cell]] = []
    for pair in shown.top(LISTED):
        score = float(own[rows_of[pair.query], columns_of[pair.key]]) if pair.key in columns_of else 0.0
        rows.append([pair.query, pair.key, pair.score, score])
    every = len(shown.table()[0]) * len(shown.table()[1])
    count = f"The {LISTED:,} largest of {every:,} pairs" if every > LISTED else f"All {every:,} pairs"
    columns = [
        Column(f"of {quoted(found.query)}"), Column(f"of {quoted(found.key)}"),
        Column("difference", 2, bar=True, signed=True), Column("score", 2, signed=True),
    ]  # fmt: skip
    return Table(
        name="Largest pairs", title="The largest pairs of what both hold", columns=columns, rows=rows, screen=True,
        total=[f"all {every:,} pairs", "", shown.score, found.score], tab=TAB,
        note=f"{count}; difference: from the mean score of the {found.seen} tokens that it may look at; score: "
        "scale · q · k. .table(), and --json of regard why --edge, have every one.",
    )  # fmt: skip
