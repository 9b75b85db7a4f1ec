"""The senses of a word in a terminal: of each its share, good examples, and the words that tell it."""

from rich.console import Console, RenderableType
from rich.text import Text

from regard.corpus.asking.sense_sentences import how_found, sense_label, sense_sentences, senses_title
from regard.corpus.asking.senses import Sense, Senses
from regard.views.terminal.concordance import context_lines
from regard.views.terminal.layout import columns, put, section, short, shown, visible


def show_senses(found: Senses, console: Console) -> None:
    """Print every sense, the largest first, and how many were tried."""
    parts: list[RenderableType] = [Text(visible(senses_title(found)), style="bold")]
    if not found.told_apart:
        parts += [Text(visible(sentence)) for sentence in sense_sentences(found)]
    parts += [Text(how_found(found), style="dim"), Text()]
    parts += [_sense(found, each, console.width) for each in found.senses]
    if any(word.checked for each in found.senses for word in each.words):
        parts.append(
            Text(
                "changed: of the occurrences near the word, how many come nearer to another sense when it is cut from\n"
                "them in all layers and heads; random: the same for another word of the excerpt",
                style="dim",
            )
        )
    parts += [Text(note, style="yellow") for note in found.notes]
    put(parts, console)


def _sense(found: Senses, each: Sense, width: int) -> RenderableType:
    parts: list[RenderableType] = list(context_lines(each.examples, width - 2))
    if each.words:
        checked = any(word.checked for word in each.words)
        heads = [("checked", "right"), ("changed", "right"), ("random", "right")] if checked else []
        table = columns("word near it", ("times", "right"), ("elsewhere", "right"), ("z", "right"), *heads)
        for word in each.words:
            shares = [shown(share, ".0%") for share in (word.changed, word.random_changed)]
            cells = [str(word.checked), *shares] if checked else []
            table.add_row(short(word.word), str(word.near), str(word.near_others), f"{word.score:.1f}", *cells)
        parts += [Text(), table]
    return section(f"{'sense ' if found.told_apart else ''}{short(sense_label(found, each), 60)}", *parts)
