"""One attention score as panels: the pairs of parts that make it, as grids with the sums of both sides, and a list."""

import re
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Heat, Panel, Sums, Table
from regard.explain.causes.score_writers import By, largest_writers_and_rest
from regard.explain.wording import signed
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.score.sources import ScoreSources

MOST = 96  # parts of a side that a grid has by themselves; the others are one row, or column, together
FEW = 48  # parts of a side up to which a picture has each writer
LISTED = 300  # pairs of the list
GROUPS: tuple[tuple[By, str, str], ...] = (
    ("source", "By source token", "the token that attention read them from, over all heads and layers"),
    ("layer", "By layer", "the layer that wrote them"),
    ("writer", "By writer", "what wrote them: embeddings, each head, each feed-forward layer, each layer's biases"),
    ("kind", "By kind", "the kind of what wrote them"),
)  # fmt: skip
CARRIED = re.compile(r"attention from (?:“(.*)”|(a blank|a line break)) \((\d+)\)", re.DOTALL)


def of_score(found: "ScoreSources") -> list[Panel]:
    """Show the pairs by each way of grouping parts, and the largest; a picture is by writers, or layers of many."""
    beside = _score_less_other_keys(found)
    few = max(len(names) for names in beside.table()[:2]) <= FEW
    return [*(_pairing(found, by, name, what, drawn=by == ("writer" if few else "layer")) for by, name, what in GROUPS),
            _score_pairs_table(found), *_sides(found)]  # fmt: skip


def _sides(found: "ScoreSources") -> list[Table]:
    """What each part of each side brings with all of the other, by every way of grouping them."""
    beside, tables = found.beside_the_others(), []
    for by, name, _ in (GROUPS[3], GROUPS[1], GROUPS[0], GROUPS[2]):
        query, key = beside.side("query", by), beside.side("key", by)
        rows: list[list[Cell]] = [
            [*(query[n] if n < len(query) else ("", None)), *(key[n] if n < len(key) else ("", None))]
            for n in range(max(len(query), len(key)))
        ]
        columns = [
            Column(f"of {quoted(found.query)}"), Column("difference", 4, signed=True),
            Column(f"of {quoted(found.key)}"), Column("difference", 4, signed=True),
        ]  # fmt: skip
        title = f"Each side with all of the other, {name[0].lower()}{name[1:]}"
        tables.append(Table(name=f"Sides {name[0].lower()}{name[1:]}", title=title, columns=columns, rows=rows))
    return tables


def short_score_part_name(name: str) -> str:
    """A part's name as a label: of a source token, the token and its number."""
    found = CARRIED.fullmatch(name)
    return name if found is None else f"{found[1] or found[2]} {found[3]}"


def _score_less_other_keys(found: "ScoreSources") -> "ScoreSources":
    """The difference from the mean of the other keys, where there are others."""
    return found.beside_the_others() if found.seen > 1 else found


def _pairing(found: "ScoreSources", by: By, name: str, what: str, *, drawn: bool) -> Heat:
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
    if any(others):
        note += f" Of a side with more than {MOST} parts those that matter least are its last row or column, together."
    title = f"What makes the score of {quoted(found.query)} for {quoted(found.key)}, {name[0].lower()}{name[1:]}"
    return Heat(
        name=name, title=title, note=note, caption=caption, others=(others[0], others[1]),
        rows=[short_score_part_name(each) for each in queries], columns=[short_score_part_name(each) for each in keys],
        values=scores.tolist(), signed=True, unit="adds", digits=4, picture=drawn,
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
        Column("difference", 4, bar=True, signed=True), Column("score", 4, signed=True),
    ]  # fmt: skip
    return Table(
        name="Largest pairs", title="The largest pairs of what both hold", columns=columns, rows=rows, screen=True,
        total=[f"all {every:,} pairs", "", shown.score, found.score],
        note=f"{count}; difference: from the mean score of the {found.seen} tokens that it may look at; score: "
        "scale · q · k. .table(), and --json of regard why --edge, have every one.",
    )  # fmt: skip
