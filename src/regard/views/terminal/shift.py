"""A change of meaning in a terminal: the distance and its test, then the senses of both groups."""

from rich.console import Console, RenderableType
from rich.text import Text

from regard.corpus.asking.shift import Shift
from regard.views.terminal.concordance import context_lines
from regard.views.terminal.layout import columns, put, quoted, section, short


def show_shift(found: Shift, console: Console) -> None:
    """Print whether the groups differ by more than chance, then which senses came and went."""
    change, (one, other) = found.change, (short(name, 30) for name in found.groups)
    by_chance = f"p = {change.p:.3g}, {change.rounds:,} permutations of {found.permuted}"
    measures = columns("", ("", "right"))
    measures.add_row("average pairwise distance (APD)", f"{change.apd:.4f}")
    measures.add_row(f"within {one}", f"{change.within[0]:.4f}")
    measures.add_row(f"within {other}", f"{change.within[1]:.4f}")
    measures.add_row("2 APD less both: 0 where nothing changed", f"{change.statistic:.4f}")
    table = columns("sense", (one, "right"), (other, "right"), "")
    for each in found.senses:
        counts = (f"{n:,} ({share:.0%})" for n, share in zip(each.occurrences, each.shares, strict=True))
        table.add_row(short(each.name), *counts, "" if each.fate == "kept" else each.fate)
    parts: list[RenderableType] = [
        section(f"{quoted(found.word)} in {one} ({change.occurrences[0]:,}) and {other} ({change.occurrences[1]:,})",
                measures, Text(by_chance)),
        section("senses of both together", table),
    ]  # fmt: skip
    for each in found.senses:
        for name, lines in zip((one, other), each.examples, strict=True):
            if lines:
                parts.append(section(f"sense {short(each.name)} in {name}", *context_lines(lines, console.width - 2)))
    put([*parts, *(Text(note, style="yellow") for note in found.notes)], console)
