"""A change of meaning in a terminal: the distance and its test, then the senses of both groups."""

from rich.console import Console, RenderableType
from rich.text import Text

from regard.corpus.asking.clusters import NOT_TOLD_APART
from regard.corpus.asking.shift import Shift
from regard.corpus.asking.shift_sentences import shift_sentences
from regard.views.terminal.concordance import context_lines
from regard.views.terminal.layout import columns, in_title, put, section, short, shown, visible

FATES = {"kept": "", "gained": "gained", "lost": "lost", "unsure": "not shown"}


def show_shift(found: Shift, console: Console) -> None:
    """Print whether the groups differ by more than chance, then which senses came and went."""
    change, (one, other) = found.change, (short(name, 30) for name in found.groups)
    measures = columns("", ("", "right"))
    measures.add_row("average pairwise distance (APD)", f"{change.apd:z.4f}")
    measures.add_row(f"within {one}", f"{change.within[0]:z.4f}")
    measures.add_row(f"within {other}", f"{change.within[1]:z.4f}")
    measures.add_row("2 APD less both: 0 where nothing changed", f"{change.statistic:z.4f}")
    table = columns("sense", (one, "right"), (other, "right"), ("p", "right"), "")
    for each in found.senses:
        counts = (f"{n:,} ({share:.0%})" for n, share in zip(each.occurrences, each.shares, strict=True))
        table.add_row(short(each.name), *counts, shown(each.p, ".3g"), FATES[each.fate])
    parts: list[RenderableType] = [
        section(f"{in_title(found.word)} in {one} ({change.occurrences[0]:,}) and {other} ({change.occurrences[1]:,})",
                *(Text(visible(sentence)) for sentence in shift_sentences(found)), Text(), measures),
        section("senses of both together", table),
    ]  # fmt: skip
    for each in found.senses:
        for name, lines in zip((one, other), each.examples, strict=True):
            if lines:
                sense = "occurrences" if each.name == NOT_TOLD_APART else f"sense {short(each.name)}"
                parts.append(section(f"{sense} in {name}", *context_lines(lines, console.width - 2)))
    put([*parts, *(Text(note, style="yellow") for note in found.notes)], console)
