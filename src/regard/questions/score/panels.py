"""Show the pairs of components that make an attention score: as grids with row and column sums, and as a list."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Heat, Panel, Sums, Table
from regard.explain.causes.score_writers import By, largest_writers_and_rest
from regard.explain.wording import fixed, listed, short_head, signed
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.score.sources import ScoreSources

MOST = 96  # parts of a side that a grid has by themselves; the others are one row, or column, together
FEW = 48  # parts of a side up to which a picture has each writer
LISTED = 300  # pairs of the list
TAB = "The score"  # of a page, which has all of it
GROUPS: tuple[tuple[By, str], ...] = (
    ("source", "By source token"), ("layer", "By layer"), ("writer", "By writer"), ("kind", "By kind"),
)  # fmt: skip
CARRIED = re.compile(r"attention from (?:“(.*)”|(a blank|a line break)) \((\d+)\)", re.DOTALL)


def of_score(answer: "ScoreSources") -> list[Panel]:
    """Show the pairs by each way of grouping components, and the largest; a plot is by writers, or layers if many.

    Ways that make the same components are shown once, and none by source token if no attention wrote any.
    """
    apart = _score_less_other_keys(answer)
    few = max(len(names) for names in apart.table()[:2]) <= FEW
    shown: dict[str, list[tuple[By, str]]] = {}
    for by, name in GROUPS:
        queries, keys, scores = apart.table(by)
        if by == "source" and not any(map(CARRIED.fullmatch, [*queries, *keys])):
            continue
        shown.setdefault(str((queries, keys, scores.tolist())), []).append((by, name))
    ways = list(shown.values())
    drawn: By = "writer" if few else "layer"
    grids = [_pairing(answer, same, drawn=drawn in {by for by, _ in same}) for same in ways]
    return [*grids, _score_pairs_table(answer), _sides(answer, [same[0] for same in ways])]


def _sides(answer: "ScoreSources", ways: Sequence[tuple[By, str]]) -> Table:
    """Sum each component of each side over the other side, by every way of grouping, the fewest components first."""
    apart = answer.beside_the_others()
    sides = [(name[3:], apart.side("query", by), apart.side("key", by)) for by, name in ways]
    rows: list[list[Cell]] = [
        [name, *(query[n] if n < len(query) else ("", None)), *(key[n] if n < len(key) else ("", None))]
        for name, query, key in sorted(sides, key=lambda side: len(side[1]))
        for n in range(max(len(query), len(key)))
    ]
    columns = [
        Column("by"), Column(f"of {quoted(answer.query)}"), Column("sum", 2, signed=True),
        Column(f"of {quoted(answer.key)}"), Column("sum", 2, signed=True),
    ]  # fmt: skip
    title = f"Components of the score in {short_head(answer.layer, answer.head)}, summed over the other side"
    note = "Each sum is a part of the difference from the mean score."
    return Table(name="Each side", title=title, columns=columns, rows=rows, note=note, tab=TAB)


def short_score_part_name(name: str) -> str:
    """Shorten the name of a component for a label: of a source token, the token and its number."""
    found = CARRIED.fullmatch(name)
    return name if found is None else f"{found[1] or found[2]} {found[3]}"


def _score_less_other_keys(answer: "ScoreSources") -> "ScoreSources":
    """Return the difference from the mean over all keys, if there are several."""
    return answer.beside_the_others() if answer.seen > 1 else answer


def _pairing(answer: "ScoreSources", same: Sequence[tuple[By, str]], *, drawn: bool) -> Heat:
    """Make a grid of all pairs. same: the ways of grouping that make this grid; drawn: whether it is the plot."""
    shown = _score_less_other_keys(answer)
    queries, keys, scores = shown.table(same[0][0])
    others = [len(names) - MOST + 1 if len(names) > MOST else 0 for names in (queries, keys)]
    queries, scores = largest_writers_and_rest(queries, scores, MOST)
    keys, across = largest_writers_and_rest(keys, scores.T, MOST)
    scores = across.T
    less = f" minus the mean of {answer.seen} keys" if shown.difference else ""
    whole = f"the score {signed(answer.score)} minus the mean score {signed(answer.mean)}" if less else "the score"
    caption = f"All cells sum to {signed(shown.score)}, {whole}."
    head = short_head(answer.layer, answer.head)
    by = " and ".join(name.lower() for _, name in same)
    return Heat(
        name=same[0][1], title=f"Score from {quoted(answer.query)} to {quoted(answer.key)} in {head}, {by}",
        note=f"Each cell is a component of the query times a component of the key. {caption}",
        caption=caption, others=(others[0], others[1]),
        rows=[short_score_part_name(name) for name in queries], columns=[short_score_part_name(name) for name in keys],
        values=scores.tolist(), signed=True, unit="score", picture=drawn, tab=TAB, unbounded=True,
        axes=(f"components of {quoted(answer.query)} (query)", f"components of {quoted(answer.key)} (key){less}"),
        sums=Sums(
            rows=scores.sum(1).tolist(), columns=scores.sum(0).tolist(), all=float(scores.sum()),
            across="sum of row", down="sum of column", name="sum of all cells",
        ),
    )  # fmt: skip


def _score_pairs_table(answer: "ScoreSources") -> Table:
    """List the largest pairs of writers, with their part of the difference from the mean and of the score."""
    shown = _score_less_other_keys(answer)
    queries, keys, own = answer.table()
    rows_of, columns_of = ({name: n for n, name in enumerate(names)} for names in (queries, keys))
    rows: list[list[Cell]] = []
    for pair in shown.top(LISTED):
        score = float(own[rows_of[pair.query], columns_of[pair.key]]) if pair.key in columns_of else 0.0
        rows.append([pair.query, pair.key, pair.score, score])
    every = len(shown.table()[0]) * len(shown.table()[1])
    columns = [
        Column(f"of {quoted(answer.query)}"), Column(f"of {quoted(answer.key)}"),
        Column("difference", 2, bar=True, signed=True, unbounded=True),
        Column("score", 2, signed=True, unbounded=True),
    ]  # fmt: skip
    head, most = short_head(answer.layer, answer.head), f"{LISTED:,} largest" if every > LISTED else "Largest"
    added = [f"a bias of {signed(answer.bias)}"] if answer.bias else []
    added += [f"the softcap (to {fixed(answer.softcapped, 2, True)})"] if answer.softcapped is not None else []
    without = f" The score excludes {listed(added)}." if added else ""
    return Table(
        name="Largest pairs", columns=columns, rows=rows, screen=True, tab=TAB,
        title=f"{most} pairs of components in the score from {quoted(answer.query)} to {quoted(answer.key)}, {head}",
        total=[f"all {every:,} pairs", "", shown.score, answer.score],
        note=f"Difference: score minus the mean over the {answer.seen} tokens that the query can attend to.{without}",
    )  # fmt: skip
