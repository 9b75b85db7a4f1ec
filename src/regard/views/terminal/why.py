"""The rankings of tokens and heads behind a word, in a terminal."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.text import Text

from regard.explain.why import Cause, Why
from regard.trace.trace import Status
from regard.views.terminal.layout import columns, put, quoted, section, shown, spelled, status

MEASURES = {
    "effect": "by effect if ablated: 1 - cosine of the contextual embedding",
    "divergence": "by what ablation changes about the next token after the word (KL divergence, nats)",
}
SIDES = {"decoder": "target ", "cross": "source "}  # whose tokens the numbers count


def show_why(
    found: Sequence[tuple[str, Why]], statuses: Sequence[Status], top: int, console: Console, took: float | None = None
) -> None:
    """Print the rankings of each occurrence, by its label, then the status. took: seconds for everything."""
    parts = []
    for label, why in found:
        title = f"{quoted(why.word)} in {'target' if why.side == 'target' else 'text'} {label}"
        parts.append(_ranking(f"{title}: tokens behind it", why, why.tokens, why.tokens_agreement, top))
        parts.append(_ranking(f"{title}: heads behind it", why, why.heads, why.heads_agreement, top))
    put([*parts, status(statuses, took=took)], console)


def _ranking(title: str, why: Why, causes: Sequence[Cause], agreement: tuple[float, float], top: int) -> Group:
    says_next = why.by == "divergence"
    measures = [("next token", "right")] if says_next else []
    rows = columns(("", "right"), "", *measures, ("effect", "right"), ("contribution", "right"), ("weight", "right"))
    for rank, cause in enumerate(causes[:top], 1):
        name = (
            cause.name
            if cause.token is None
            else f"{spelled(cause.name)} ({SIDES.get(cause.part or '', '')}{cause.token}{', sink' * cause.sink})"
        )
        measured = [shown(cause.divergence, ".4f")] if says_next else []
        rows.add_row(str(rank), name, *measured, f"{cause.effect:.4f}", shown(cause.contribution), shown(cause.weight))
    left = f"; {len(causes) - top} more left out" if len(causes) > top else ""
    by, raw = shown(agreement[1], ".2f"), shown(agreement[0], ".2f")
    what = "it" if says_next else "the effect"
    if any(cause.sink for cause in causes):
        left += "\nsink: a token that most heads give far more than its share, whatever it means"
    note = f"{MEASURES[why.by]}{left}\nrank correlation with {what}: contribution {by}, weight {raw}"
    return section(title, rows, Text(note, style="dim"))
