"""What a model wrote plain, and what it wrote steered, side by side in a terminal."""

from rich.console import Console
from rich.text import Text

from regard.generation.generator import Generated
from regard.views.terminal.layout import columns, put, visible
from regard.views.terminal.one_screen import ending


def show_steering(plain: Generated, steered: Generated, what: str, console: Console) -> None:
    """Print both texts in columns; what: how the second was steered."""
    table = columns("plain", "steered")
    table.add_row(*(Text(visible(each.text), overflow="fold") for each in (plain, steered)))
    same = [] if plain.new != steered.new else ["both texts are the same: try a larger --strength, or another --layer"]
    more = "--strength S, --layer N, --new-tokens N"
    put([Text(what), Text(), table, Text(), ending([steered.trace.status], more, notes=same)], console)
