"""The page of one attention score: the pairs of parts that make it, as grids with the sums of both sides."""

import re

from regard.explain.causes.score_sources import ScoreSources
from regard.explain.causes.score_writers import By, together
from regard.explain.findings.score_sources import exactness, score_findings
from regard.explain.findings.wording import capital, number, signed
from regard.text.quoting import quoted
from regard.trace.trace import PairTrace, Trace
from regard.web.assemble import Choice, Opening, page_of
from regard.web.join_pages import add_panels
from regard.web.page import Page, status_lines
from regard.web.panels import Row, cell_sums, column, heat, table
from regard.web.score_rules import Data

MOST = 96  # parts of a side that a grid has by themselves; the others are one row, or column, together
OTHERS = "others together"
LISTED = 300  # pairs of the list
GROUPS: tuple[tuple[By, str, str], ...] = (
    ("source", "By source token", "the token that attention read them from, over all heads and layers"),
    ("layer", "By layer", "the layer that wrote them"),
    ("writer", "By writer", "what wrote them: embeddings, each head, each feed-forward layer, each layer's biases"),
    ("kind", "By kind", "the kind of what wrote them"),
)  # fmt: skip
CARRIED = re.compile(r"attention from (?:“(.*)”|(a blank|a line break)) \((\d+)\)", re.DOTALL)


def score_page(found: ScoreSources) -> Page:
    """Put together the page of one score."""
    where = f"{'cross-attention of ' * (found.part == 'cross')}layer {found.layer}, head {found.head}"
    page = Page(
        f"Why {quoted(found.query)} gives {quoted(found.key)} {number(found.weight)} of its attention in {where}"
    )
    page.findings = score_findings(found)
    page.status = [*(status_lines([found.status], page) if found.status.model else []), f"{capital(exactness(found))}."]
    page.panels = score_panels(found)
    page.opening["view"] = "panel 0"
    return page


def score_page_with(found: ScoreSources, trace: Trace | PairTrace, choice: Choice) -> Page:
    """Put together the page of one score with the attention of its text, which opens at the score.

    choice: what of the trace goes into the page.
    """
    own = score_page(found)
    opening = Opening(layer=found.layer, head=found.head, token=found.query_parts.tokens[0])
    page = page_of(trace, choice, opening, title=own.title, findings=own.findings)
    page.opening["view"] = f"panel {len(page.panels)}"
    add_panels(page, [own], sentences=False)
    return page


def plain(name: str) -> str:
    """A part's name as a label: of a source token, the token and its number."""
    found = CARRIED.fullmatch(name)
    return name if found is None else f"{found[1] or found[2]} {found[3]}"


def score_panels(found: ScoreSources) -> list[Data]:
    """Write the pairs by each way of grouping parts, and the largest of them."""
    return [*(_grid(found, by, name, what) for by, name, what in GROUPS), _pairs(found)]


def _grid(found: ScoreSources, by: By, name: str, what: str) -> Data:
    shown = found.beside_the_others() if found.seen > 1 else found
    queries, keys, scores = shown.table(by)
    queries, scores = together(queries, scores, MOST)
    keys, across = together(keys, scores.T, MOST)
    scores = across.T
    less = f", less what the mean of all {found.seen} keys holds" if shown.difference else ""
    is_sum = (
        f"by which the score, {signed(found.score)}, is {'above' if shown.score >= 0 else 'below'} the mean, "
        f"{signed(found.mean)}, of the {found.seen} tokens that it may look at. What all of them get alike moves no "
        "attention"
        if shown.difference
        else "the score"
    )
    note = (
        f"Parts are grouped by {what}. A cell is the product of one part of the query with one part of the key: "
        f"red speaks for looking there, blue against it. All cells sum to {signed(shown.score)}, {is_sum}. The bars "
        "are the sums of rows and columns: what a part does with all of the other side."
    )
    if OTHERS in queries[-1] + keys[-1]:
        note += f" Of a side with more than {MOST} parts those that matter least are its last row or column, together."
    return heat(
        f"What makes the score of {quoted(found.query)} for {quoted(found.key)}, {name[0].lower()}{name[1:]}", note,
        [plain(each) for each in queries], [plain(each) for each in keys],
        scores.tolist(), signed=True, unit="adds", digits=4, name=name,
        axes=(f"what {quoted(found.query)} holds (query)", f"what {quoted(found.key)} holds (key){less}"),
        sums=cell_sums(
            scores.sum(1).tolist(), scores.sum(0).tolist(), float(scores.sum()),
            ("with all of the key", "all of the query", "all of the query · all of the key"),
        ),
    )  # fmt: skip


def _pairs(found: ScoreSources) -> Data:
    """The largest pairs of writers, each also as it is in the score itself."""
    shown = found.beside_the_others() if found.seen > 1 else found
    queries, keys, own = found.table()
    rows_of, columns_of = ({name: n for n, name in enumerate(names)} for names in (queries, keys))
    rows: list[Row] = []
    for pair in shown.top(LISTED):
        score = float(own[rows_of[pair.query], columns_of[pair.key]]) if pair.key in columns_of else 0.0
        rows.append([pair.query, pair.key, pair.score, score])
    rows.append(["all pairs", "", shown.score, found.score])
    every = len(shown.table()[0]) * len(shown.table()[1])
    count = f"the {LISTED:,} largest of {every:,} pairs" if every > LISTED else f"all {every:,} pairs"
    columns = [
        column(f"of {quoted(found.query)}"), column(f"of {quoted(found.key)}"),
        column("difference", 4, bar=True), column("score", 4),
    ]  # fmt: skip
    note = (
        f"{count}; difference: from the mean of the {found.seen} tokens that it may look at; score: scale · query · "
        "key; regard why --edge --json and .table() have every pair."
    )
    return table("The largest pairs of what both hold", note, columns, rows, name="Largest pairs")
