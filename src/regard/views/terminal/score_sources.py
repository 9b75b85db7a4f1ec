"""Why a head looks from one word at another, in a terminal: sentences, then the largest pairs of parts."""

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from regard.explain.causes.score_sources import ScoreSources
from regard.explain.causes.score_writers import By
from regard.explain.findings.score_sources import exactness, score_findings
from regard.explain.findings.wording import signed
from regard.text.quoting import quoted
from regard.trace.status import Status
from regard.views.terminal.layout import columns, put, section, visible
from regard.views.terminal.one_screen import ending, sentences

GROUPS: tuple[tuple[By, str], ...] = (
    ("kind", "by kind"), ("layer", "by layer"), ("source", "by source token"), ("writer", "by writer")
)  # fmt: skip


def show_score(
    found: ScoreSources, statuses: Sequence[Status], top: int, everything: bool, console: Console, took: float | None
) -> None:
    """Print what was found; everything: also each side's parts, by kind, layer, source token and writer."""
    parts: list[RenderableType] = [sentences(score_findings(found)), *render_pairs(found, top)]
    if everything:
        parts += render_sides(found)
    more = "--top K, --json FILE, --figure FILE" if everything else "--all (each side's parts), --top K, --json FILE"
    put([*parts, ending(statuses, more, took, [exactness(found)])], console)


def render_pairs(found: ScoreSources, top: int) -> list[RenderableType]:
    """The largest pairs of the difference from the other keys, with what they are of the score itself."""
    beside = found.beside_the_others()
    queries, keys, plain = found.table()
    places = {name: n for n, name in enumerate(queries)}, {name: n for n, name in enumerate(keys)}
    table = columns(
        f"of {quoted(visible(found.query))}",
        f"of {quoted(visible(found.key))}",
        ("difference", "right"),
        ("score", "right"),
    )
    for pair in beside.top(top):
        own = plain[places[0][pair.query], places[1][pair.key]] if pair.key in places[1] else 0.0
        table.add_row(pair.query, pair.key, signed(pair.score), signed(float(own)))
    total = f"all {plain.numel():,} pairs"
    table.add_row(Text(total, style="bold"), "", signed(beside.score), signed(found.score))
    note = f"difference: from the mean score of the {found.seen} tokens that it may look at; score: scale · q · k"
    return [section("The largest pairs of what both hold", table), Text(note, style="dim")]


def render_sides(found: ScoreSources) -> list[RenderableType]:
    """What each part of each side brings with all of the other, every way of grouping them."""
    beside = found.beside_the_others()
    parts: list[RenderableType] = []
    for by, title in GROUPS:
        query, key = beside.side("query", by), beside.side("key", by)
        table: Table = columns(
            f"of {quoted(visible(found.query))}",
            ("difference", "right"),
            f"of {quoted(visible(found.key))}",
            ("difference", "right"),
        )
        for n in range(max(len(query), len(key))):
            cells = []
            for side in (query, key):
                cells += [visible(side[n][0]), signed(side[n][1])] if n < len(side) else ["", ""]
            table.add_row(*cells)
        parts.append(section(f"Each side with all of the other, {title}", table))
    return parts
