"""What made an outcome, in a terminal: sentences, then the parts that matter most, their sum and how exact it is."""

from collections.abc import Sequence
from typing import Literal

from rich.console import Console, RenderableType
from rich.text import Text

from regard.explain.causes.attribution import Attribution
from regard.explain.causes.gradients import TokenAttribution
from regard.explain.findings.attribution import Attributed, attribution_findings, exactness
from regard.explain.findings.wording import signed
from regard.trace.status import Status
from regard.views.terminal.layout import columns, put, section, visible
from regard.views.terminal.one_screen import bar, ending, sentences

BAR = 16  # cells
Unit = Literal["token", "word"]


def show_attribution(
    found: Attributed, by: Unit, statuses: Sequence[Status], top: int, console: Console, took: float | None
) -> None:
    """Print what was found. by: whether source tokens are shown, or words."""
    parts = [sentences(attribution_findings(found, by)), *render(found, by, top)]
    notes = [exactness(found)] if isinstance(found, Attribution) else []
    put([*parts, ending(statuses, "--top K, --json FILE, --csv FILE, --figure FILE", took, notes)], console)


def render(found: Attributed, by: Unit, top: int) -> list[RenderableType]:
    """The tables: the parts, and of a direct split also what came by attention from each source."""
    if isinstance(found, Attribution):
        words = by == "word"
        sources = [each for each in found.by("source", words=words) if "attention from " in each[0]]
        return [
            _table(
                f"The largest parts, heads by source {by}", found.by("token", words=words), top, "adds", found.value
            ),
            _table(f"By attention, from each source {by}", sources, top, "adds", sum(each for _, each in sources)),
        ]
    if isinstance(found, TokenAttribution):
        return [_table(f"{by}s".capitalize(), found.by(by), top, "score", float(found.scores.sum()))]
    return [_table("Heads", found.by(), top, "score", None)]


def _table(
    title: str, parts: Sequence[tuple[str, float]], top: int, heading: str, total: float | None
) -> RenderableType:
    """The largest parts, the others together, and the sum of all, where it means something."""
    table = columns("part", (heading, "right"), "")
    largest = max((abs(each) for _, each in parts), default=0.0)
    for name, added in parts[:top]:
        own = bar(abs(added), largest, BAR)
        own.stylize("cyan" if added >= 0 else "red")
        table.add_row(visible(name), signed(added), own)
    rest = parts[top:]
    if rest and total is not None:
        table.add_row(
            Text("1 other" if len(rest) == 1 else f"{len(rest):,} others together", style="dim"),
            signed(sum(each for _, each in rest)),
            "",
        )
    if total is not None:
        table.add_row(Text("sum", style="bold"), signed(total), "")
    left = f"{len(rest):,} smaller ones are left out here, in --json"
    return section(title, table, *([Text(left, style="dim")] if rest and total is None else []))
