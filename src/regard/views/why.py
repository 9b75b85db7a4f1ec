"""Why a word ended where it did, in a terminal."""

from collections.abc import Sequence

from rich.console import Console, Group
from rich.text import Text

from regard.explain.why import Cause, Why
from regard.trace import Status
from regard.views.parts import columns, put, quoted, section, short, shown, status


def show_why(found: Sequence[tuple[str, Why]], statuses: Sequence[Status], top: int, console: Console) -> None:
    """Print the rankings of each occurrence, by its label, then the status."""
    parts = []
    for label, why in found:
        title = f"{quoted(why.word)} in text {label}"
        parts.append(_ranking(f"{title}: tokens behind it", why.tokens, why.tokens_agreement, top))
        parts.append(_ranking(f"{title}: heads behind it", why.heads, why.heads_agreement, top))
    put([*parts, status(statuses)], console)


def _ranking(title: str, causes: Sequence[Cause], agreement: tuple[float, float], top: int) -> Group:
    rows = columns(("", "right"), "", ("effect of its cut", "right"), ("contribution", "right"), ("weight", "right"))
    for rank, cause in enumerate(causes[:top], 1):
        name = cause.name if cause.token is None else f"{short(cause.name)} ({cause.token})"
        rows.add_row(str(rank), name, f"{cause.effect:.4f}", shown(cause.contribution), shown(cause.weight))
    left = f", {len(causes) - top} more left out" if len(causes) > top else ""
    by, raw = shown(agreement[1], ".2f"), shown(agreement[0], ".2f")
    note = (
        f"by effect: 1 - cosine of the contextual embedding{left}\n"
        f"rank correlation with the effect: contribution {by}, weight {raw}"
    )
    return section(title, rows, Text(note, style="dim"))
