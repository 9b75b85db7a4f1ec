"""A word's static vector beside those of reference words, as a table in a terminal."""

from rich.console import Group
from rich.text import Text

from regard.explain.vectors.static_words import Static
from regard.views.terminal.layout import columns, in_title, section, short, shown, visible


def table(static: Static) -> Group:
    """The followed word's cosine to each reference word, the same in every text."""
    rows = columns("word", ("static", "right"))
    for each in static.words[1:]:
        rows.add_row(short(each.word), shown(each.cosine) if each.cosine is not None else "has no vector")
    note = f"cosine of static vectors, of width {static.width}, from {visible(static.source)}: one point in every text"
    return section(f"{in_title(static.words[0].word)} as a static vector", rows, Text(note, style="dim"))
