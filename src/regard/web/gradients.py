"""The page of tokens' scores by gradients: the text with a colour for each token, and a table of all."""

from itertools import accumulate

from regard.explain.causes.gradients import TokenAttribution
from regard.explain.findings.attribution import attribution_findings
from regard.web.page import Page
from regard.web.panels import Row, column, strip, table
from regard.web.score_rules import Data


def gradients_page(found: TokenAttribution) -> Page:
    """Put together the page of tokens' scores."""
    page = Page(f"What each token brings to the {found.outcome_name}")
    page.findings = attribution_findings(found)
    page.panels = [*(_strip(found, n) for n in range(len(found.sides))), _tokens(found)]
    page.opening["view"] = "panel 0"
    return page


def _strip(found: TokenAttribution, side: int) -> Data:
    stop = list(accumulate(found.sides))[side]
    own = range(stop - found.sides[side], stop)
    of = f" of the {('source', 'target')[side]}" if len(found.sides) > 1 else ""
    return strip(
        f"What each token{of} brings", f"{found.method}; red speaks for the outcome, blue against it.",
        [found.tokens[n].text for n in own], [float(found.scores[n]) for n in own], signed=True, unit="score", digits=4,
        name=f"Tokens{of}",
    )  # fmt: skip


def _tokens(found: TokenAttribution) -> Data:
    sides = [*(column("side") for _ in found.sides[1:])]
    rows: list[Row] = [
        [str(row["text"]), *((str(row["side"]),) if sides else ()), int(str(row["token"])), float(str(row["score"]))]
        for row in sorted(found.rows(), key=lambda row: -abs(float(str(row["score"]))))
    ]
    columns = [column("token"), *sides, column("number", 0), column("score", 4, bar=True)]
    return table("Every token", f"the scores sum to {float(found.scores.sum()):z.4f}", columns, rows)
