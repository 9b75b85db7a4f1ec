"""The page of tokens' scores by gradients: the text with a colour for each token, and a table of all."""

from itertools import accumulate

from regard.explain.causes.gradients import TokenAttribution
from regard.explain.findings.score_sources import signed
from regard.explain.findings.wording import listed, number
from regard.web.page import Page
from regard.web.panels import Row, column, strip, table
from regard.web.score_rules import Data

NAMED = 3  # tokens that a sentence names


def gradients_page(found: TokenAttribution) -> Page:
    """Put together the page of tokens' scores."""
    page = Page(f"What each token brings to the {found.outcome_name}")
    page.findings = gradient_sentences(found)
    page.panels = [*(_strip(found, n) for n in range(len(found.sides))), _tokens(found)]
    page.opening["view"] = "panel 0"
    return page


def gradient_sentences(found: TokenAttribution) -> list[str]:
    """Say what the outcome is, what the scores sum to and how far they miss it, and which tokens bring most."""
    value = _plain(found.outcome)
    if found.baseline is None or found.gap is None:
        said = [
            f"The {found.outcome_name} is {value}. Scores are {found.method}: exact where the outcome is linear in the "
            "learned embeddings, and only there."
        ]
    else:
        said = [
            f"The {found.outcome_name} is {value}, and {_plain(found.baseline)} of the baseline. Scores are "
            f"{found.method} in {found.steps} steps: they sum to the difference, "
            f"{signed(found.outcome - found.baseline)}, but for a gap of {found.gap:.1e}."
        ]
    order = found.scores.abs().sort(descending=True, stable=True).indices.tolist()[:NAMED]
    named = [f"“{found.tokens[n].text.strip()}” ({signed(float(found.scores[n]))})" for n in order]
    return [*said, f"Most is brought by {listed(named)}."]


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
    return table("Every token", f"the scores sum to {float(found.scores.sum()):.4f}", columns, rows)


def _plain(value: float) -> str:
    return ("−" if value < 0 else "") + number(abs(value))
