"""A concordance in a terminal: the word in the middle, as much of its context as there is room for."""

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from regard.corpus.asking.find import Concordance
from regard.corpus.asking.find_sentences import concordance_sentences
from regard.corpus.asking.occurrences import Line
from regard.views.terminal.layout import put, short, shown, visible


def show_concordance(found: Concordance, console: Console, most: int) -> None:
    """Print the first lines, and how many there are."""
    title, *rest = (visible(sentence) for sentence in concordance_sentences(found, most))
    left = len(found.lines) - most
    more = [Text(f"… and {left:,} more lines: --top K, --csv FILE", style="dim")] if left > 0 else []
    notes = [Text(note, style="yellow") for note in found.notes]
    said = [Text(title, style="bold"), *(Text(sentence, style="dim") for sentence in rest)]
    put([*said, *context_lines(found.lines[:most], console.width), *more, *notes], console)


def context_lines(lines: Sequence[Line], width: int) -> list[Text]:
    """Put occurrences below each other, one a line, with where each stands where there is room."""
    if not lines:
        return []
    names = [short(_where(line), 24) for line in lines]
    scores = any(line.similarity is not None for line in lines)
    fixed = max(map(len, names)) + 2 + (6 if scores else 0)
    form = max(len(visible(line.form)) for line in lines)
    room = max(8, (width - fixed - form - 2) // 2)
    made = []
    for line, name in zip(lines, names, strict=True):
        text = Text(no_wrap=True, overflow="crop")
        if scores:
            text.append(f"{shown(line.similarity, '.2f'):>4}  ", style="dim")
        text.append(visible(line.left)[-room:].rjust(room) if room else "")
        text.append(visible(line.form), style="bold")
        rest = visible(line.right)[:room]
        text.append(rest.ljust(room + form - len(visible(line.form))) + "  ")
        text.append(name, style="dim")
        made.append(text)
    return made


def _where(line: Line) -> str:
    place = line.document.rsplit("/", 1)[-1]
    return f"{place}:{line.start}"
