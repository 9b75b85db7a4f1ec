"""The rankings of tokens and heads behind a word, in a terminal."""

from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from regard.explain.causes.token_rankings import reason
from regard.explain.causes.why import Cause, Why
from regard.explain.causes.why_measures import CHANGED, CHANGES, CONTRIBUTION, SIDES, WEIGHT
from regard.explain.findings.why import has_meaning, measured, why_findings
from regard.trace.status import Status
from regard.views.terminal.layout import columns, in_title, put, section, shown, spelled, status
from regard.views.terminal.one_screen import bar, ending, sentences

MOST_ROWS = 10  # of each ranking; of two words half, of more one


def show_why_shortly(
    found: Sequence[tuple[str, Why]], statuses: Sequence[Status], top: int, console: Console, took: float | None = None
) -> None:
    """Print what was found on one screen."""
    more = ending(statuses, "--all (every ranking, with contributions), --top K, --json FILE", took)
    put([*render_shortly(found, top, console.width), more], console)


def render_shortly(found: Sequence[tuple[str, Why]], top: int, width: int) -> list[RenderableType]:
    """The parts of one screen: sentences, then what ablating tokens and heads changes, as bars."""
    if len(found) > 2:
        table: list[RenderableType] = [_first_of_each(found)]
    else:
        rows = min(top, MOST_ROWS // len(found) if len(found) == 1 or top == MOST_ROWS else top)
        table = [part for label, why in found for part in (_title(label, why, found), _both(why, rows, width), Text())]
    by = {why.by for _, why in found}
    weight = f"{WEIGHT.heading}: {WEIGHT.of_tokens}"
    notes = [Text(f"{CHANGES}: {CHANGED[each].of_tokens}; {weight}", style="dim") for each in sorted(by)]
    orders = dict.fromkeys((why.tokens_by, why.by) for _, why in found)
    notes += [Text(reason(*each), style="dim") for each in orders]
    return [sentences(why_findings(found)), *table, *notes]


def _title(label: str, why: Why, found: Sequence[tuple[str, Why]]) -> Text:
    where = f" in {'target' if why.part == 'decoder' else 'text'} {label}" if len(found) > 1 else ""
    return Text(f"What taking a token or a head away changes about {in_title(why.word)}{where}", style="bold")


def _both(why: Why, rows: int, width: int) -> Table:
    """Tokens and heads side by side, each ranking with its bars."""
    names = [_token_name(cause, 16) for cause in why.tokens[:rows]]
    heads = [cause.name for cause in why.heads[:rows]]
    room = width - max(map(len, [*names, "without token"])) - max(map(len, [*heads, "without head"])) - 38
    room = min(16, room // 2) if room >= 6 else 0
    table = columns(
        "without token", (CHANGES, "right"), *([""] * (room > 0)), (WEIGHT.heading, "right"), "without head",
        (CHANGES, "right"), *([""] * (room > 0)),
    )  # fmt: skip
    full_token, full_head = (max(measured(each, why) for each in causes) for causes in (why.tokens, why.heads))
    for n in range(max(len(names), len(heads))):
        cells: list[str | Text] = ["", "", *([""] * (room > 0)), ""]
        if n < len(names):
            cause, name = why.tokens[n], Text(names[n], style="" if has_meaning(why.tokens[n]) else "dim")
            change = measured(cause, why)
            cells = [name, f"{change:z.3f}", *([bar(change, full_token, room)] * (room > 0)), f"{cause.weight:.2f}"]
        if n < len(heads):
            change = measured(why.heads[n], why)
            cells += [heads[n], f"{change:z.3f}", *([bar(change, full_head, room)] * (room > 0))]
        table.add_row(*cells)
    return table


def _first_of_each(found: Sequence[tuple[str, Why]]) -> RenderableType:
    """A row for each occurrence: the other word and the head that change it most."""
    table = columns("", "most without token", (CHANGES, "right"), "most without head", (CHANGES, "right"))
    for label, why in found[:MOST_ROWS]:
        first = max(
            (each for each in why.tokens if has_meaning(each)), key=lambda each: measured(each, why), default=None
        )
        token = ("–", "") if first is None else (_token_name(first, 20), f"{measured(first, why):z.3f}")
        head = why.heads[0]
        where = f"{'target' if why.part == 'decoder' else 'text'} {label}"
        table.add_row(where, *token, head.name, f"{measured(head, why):z.3f}")
    left = len(found) - MOST_ROWS
    note = [Text(f"… and {left} more occurrences", style="dim")] if left > 0 else []
    return Group(table, *note, Text("special tokens, sinks and the word itself are left out here", style="dim"))


def _token_name(cause: Cause, most: int = 24) -> str:
    return f"{spelled(cause.name, most)} ({SIDES.get(cause.part or '', '')}{cause.token}{', sink' * cause.sink})"


def show_why(
    found: Sequence[tuple[str, Why]], statuses: Sequence[Status], top: int, console: Console, took: float | None = None
) -> None:
    """Print the rankings of each occurrence, by its label, then the status. took: seconds for everything."""
    parts = []
    for label, why in found:
        title = f"{in_title(why.word)} in {'target' if why.part == 'decoder' else 'text'} {label}"
        parts.append(_ranking(f"{title}: tokens behind it", why, why.tokens, why.tokens_agreement, top))
        parts.append(_ranking(f"{title}: heads behind it", why, why.heads, why.heads_agreement, top))
    put([*parts, status(statuses, took=took)], console)


def _ranking(title: str, why: Why, causes: Sequence[Cause], agreement: tuple[float, float], top: int) -> Group:
    says_next = why.by == "divergence"
    changed = ["divergence", "effect"] if says_next else ["effect"]
    headings = [*(CHANGED[each].heading for each in changed), CONTRIBUTION.heading, WEIGHT.heading]
    rows = columns(("", "right"), "", *((heading, "right") for heading in headings))
    for rank, cause in enumerate(causes[:top], 1):
        name = cause.name if cause.token is None else _token_name(cause)
        measured = [shown(cause.divergence, ".4f")] if says_next else []
        rows.add_row(str(rank), name, *measured, f"{cause.effect:z.4f}", shown(cause.contribution), shown(cause.weight))
    left = f"; {len(causes) - top} more left out" if len(causes) > top else ""
    by, raw = shown(agreement[1], ".2f"), shown(agreement[0], ".2f")
    what = "it" if says_next else "the effect"
    if any(cause.sink for cause in causes):
        left += "\nsink: a token that most heads give far more than its share, whatever it means"
    ranked = "" if causes is why.heads else f"{reason(why.tokens_by, why.by)}\n"
    measure = f"{CHANGED[why.by].heading}: {CHANGED[why.by].of_tokens}"
    correlation = f"rank correlation with {what}: {CONTRIBUTION.heading} {by}, {WEIGHT.heading} {raw}"
    note = f"{ranked}{measure}{left}\n{correlation}"
    return section(title, rows, Text(note, style="dim"))
