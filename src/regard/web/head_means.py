"""The page of what heads do over many tokens: a grid of layers and heads for every score, and one table of all."""

from collections.abc import Mapping

import numpy as np

from regard.explain.findings.head_means import counts_finding, most_of, score_finding
from regard.explain.findings.wording import capital
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import MEANINGS, is_share
from regard.web.page import Page
from regard.web.panels import Row, column, heat, table
from regard.web.score_rules import Data

NUMBERED = "Heads are numbered layer.head, from 0. A score says where a head looks, not what that is good for."


def head_means_page(found: HeadMeans) -> Page:
    """Put together the page of the heads' scores."""
    layers, heads = next(iter(found.scores.values())).shape
    tokens = found.counts["queries"]
    page = Page(f"What {layers * heads} attention heads do over {tokens:,} tokens")
    page.findings = [
        f"{counts_finding(found)} In one text a head may do something by chance; the mean over many says what it does "
        "as a rule.",
        NUMBERED,
        *found.notes,
    ]
    page.status = [
        f"Read with {found.model}." if found.model else "",
        "Means over all tokens that are not special and not the first of their window, each counted once.",
    ]
    page.status = [line for line in page.status if line]
    shares = [value for name in found.scores if is_share(name) for value in _known(found.scores[name])]
    page.panels = [_overview(found)]
    page.panels += [_grid(found, name, max(shares, default=0.0)) for name in found.scores]
    page.panels.append(_all(found))
    page.opening["view"] = "panel 0"
    return page


def heads_page(tables: Mapping[str, HeadMeans]) -> Page:
    """Put together the page of several tables of the heads' scores, by what they are of."""
    if len(tables) == 1:
        return head_means_page(*tables.values())
    pages = {name: head_means_page(found) for name, found in tables.items()}
    page = Page("What attention heads do: " + "; ".join(pages))
    for name, own in pages.items():
        page.findings = [*page.findings, f"{capital(name)}: {counts_finding(tables[name])}", *tables[name].notes]
        page.status = list(dict.fromkeys([*page.status, *own.status]))
        page.panels += [panel | {"name": f"{name}: {panel['name']}"} for panel in own.panels]
    page.findings = [*page.findings, NUMBERED]
    page.opening["view"] = "panel 0"
    return page


def _overview(found: HeadMeans) -> Data:
    """Of each score the head that has most of it."""
    rows: list[Row] = []
    for name in found.scores:
        known = _known(found.scores[name])
        most: Row = [None, None]
        for head, score in most_of(found, name)[:1]:
            most = [head, score]
        rows.append([name, *most, float(np.mean(known)) if known else None, found.count(name), MEANINGS[name].says])
    columns = [
        column("score"), column("head with most"), column("its mean", 2), column("all heads", 2),
        column("tokens", 0), column("what it is"),
    ]  # fmt: skip
    note = "shares of a token's attention, from 0 to 1; entropy in nats, distance in tokens"
    return table("The heads with most of each score", note, columns, rows, name="Overview")


def _grid(found: HeadMeans, name: str, most: float) -> Data:
    """One score of every head; all shares have one scale, so that grids can be compared."""
    values = found.scores[name]
    own = [[None if value != value else float(value) for value in row] for row in values]
    meaning = MEANINGS[name]
    unit = "share of attention" if is_share(name) else meaning.unit
    return heat(
        f"{name}: {unit}", f"{meaning.says} {score_finding(found, name)}",
        [f"layer {found.layer(n)}" for n in range(values.shape[0])], [f"head {n}" for n in range(values.shape[1])], own,
        unit=meaning.unit, largest=most if is_share(name) else None, name=name,
    )  # fmt: skip


def _all(found: HeadMeans) -> Data:
    rows: list[Row] = [
        [f"{row['layer']}.{row['head']}", *(float(str(row[name])) for name in found.scores)] for row in found.rows()
    ]
    columns = [column("head"), *(column(name, 3) for name in found.scores)]
    note = "one row a head; a click on a column's name sorts by it"
    return table("Every head with every score", note, columns, rows, name="All heads")


def _known(values: np.ndarray) -> list[float]:
    """The numbers that there are."""
    return [float(value) for value in values.ravel() if value == value]
