"""The page of heads' numbers by one gradient: a grid of layers and heads, behind each what it took from every token."""

from collections.abc import Sequence

from regard.explain.causes.head_gradients import HeadAttribution, named_head
from regard.explain.findings.attribution import attribution_findings, beside
from regard.text.tokens import Token
from regard.web.page import Page
from regard.web.panels import Row, cell_tokens, column, heat, table
from regard.web.score_rules import Data
from regard.web.texts import direction


def head_gradients_page(found: HeadAttribution) -> Page:
    """Put together the page of heads' numbers."""
    page = Page(f"What each head brings to the {found.outcome_name}")
    page.findings = attribution_findings(found)
    page.status.append("Numbers are of one gradient: exact where the outcome is linear in a head's output.")
    page.panels = [_grid(found), _heads(found)]
    page.opening["view"] = "panel 0"
    return page


def _grid(found: HeadAttribution) -> Data:
    count = max(map(len, found.scores))
    values = [[float(own[h]) if h < len(own) else None for h in range(count)] for own in found.scores]
    note = f"Each cell is what one head brings (red) or takes away (blue), beside {beside(found)}, to the first order."
    behind = None
    if found.sources is not None:
        note += " Click a head, or press Enter on it: from which tokens."
        texts = list(dict.fromkeys(map(tuple, found.tokens)))
        behind = cell_tokens(
            "What this head brings by looking at each token. The numbers sum to the head's.",
            [_shown(text) for text in texts],
            [texts.index(tuple(own)) for own in found.tokens],
            [[own[h].tolist() if h < len(own) else None for h in range(count)] for own in found.sources],
        )
    rows = [named_head(call, 0).removesuffix(", head 0") for call in found.calls]
    return heat(
        "What each head brings", note, rows, [f"head {n}" for n in range(count)], values, signed=True, unit="brings",
        digits=4, axes=("layer", "head"), name="Heads", behind=behind,
    )  # fmt: skip


def _heads(found: HeadAttribution) -> Data:
    rows: list[Row] = [[name, score] for name, score in found.by()]
    return table("Every head", "by absolute size", [column("head"), column("brings", 4, bar=True)], rows)


def _shown(tokens: Sequence[Token]) -> tuple[list[str], str]:
    text = [token.text for token in tokens]
    return text, direction("".join(text))
