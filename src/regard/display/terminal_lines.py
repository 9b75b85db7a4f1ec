"""Write named numbers in lines, a text with bars or colours, and what a tokenizer did not know, for a terminal."""

from collections.abc import Sequence

from rich.console import RenderableType
from rich.text import Text

from regard.display.panels import Shares, Strip
from regard.display.terminal_parts import terminal_height_characters
from regard.display.written import number_text, with_sign
from regard.text.quoting import quoted, short, some_of, spelled, visible
from regard.trace.status import Status

NAME = 14  # characters of a token in a line
MOST_LINES = 4  # of a long text
FEW = 3  # unknown pieces, and texts with such, that are named
GAP = "  "  # between two names
# Backgrounds under black letters, distinct to colour-blind eyes; two that stand side by side differ in lightness.
COLOURS = ("#e69f00", "#9fd4f2", "#3fb28f", "#f0e442", "#e8a9c8", "#d9d9d9")


def coloured(strip: Strip) -> Text:
    """Write a text, each of its tokens on a colour, blanks that belong to none as they are."""
    line = Text()
    for n, (gap, token) in enumerate(zip(strip.before, strip.tokens, strict=True)):
        line.append(_printable_for_terminal(gap)).append(
            _printable_for_terminal(token), style=f"black on {COLOURS[n % len(COLOURS)]}"
        )
    return line


def _printable_for_terminal(text: str) -> str:
    """A text with its blanks kept and everything else that cannot be printed written out."""
    return "".join(c if c in " \xa0" else visible(c) for c in text)


def in_lines(shares: Shares, room: int) -> Text:
    """Write names with their numbers so that both stay on one line of so many characters."""
    line, used = Text(), 0
    write = with_sign if shares.signed else number_text
    for n, (name, value) in enumerate(shares.parts):
        said = f"{spelled(name, NAME + 10)} {write(value, shares.digits)}"
        if used and used + len(GAP) + len(said) > room - len(shares.mark):
            if shares.one_line:
                break
            line.append("\n")
            used = 0
        between = GAP if used else ""
        name, _, own = said.rpartition(" ")
        line.append(between + name, style="dim" if n < shares.apart else "")
        line.append(f" {own}", style="dim")
        used += len(between) + len(said)
    return line.append(shares.mark, style="dim") if shares.parts else Text("–", style="dim")


def text_with_bars(strip: Strip, width: int) -> list[RenderableType]:
    """Write the tokens in lines, each followed by the line of its bars; of a long text the lines around what is marked.

    Lines of a text without any number have no bars.
    """
    gap = "" if strip.running else " "
    names = [visible(token) if strip.running else spelled(token, 1000) for token in strip.tokens]
    before = f"{strip.label}  " if strip.label else ""
    lines = _token_lines_with_bars(names, width - len(before), len(gap))
    first = 0
    if len(lines) > MOST_LINES and strip.marked:
        middle = next(n for n, line in enumerate(lines) if strip.marked[0] in line)
        first = max(0, min(middle - 1, len(lines) - MOST_LINES))
    parts: list[RenderableType] = []
    for n, line in enumerate(lines[first : first + MOST_LINES]):
        written = Text(before if n == 0 else " " * len(before), style="bold" if n == 0 else "")
        under = Text(" " * len(before))
        for place in line:
            apart = place in strip.special or (strip.running and strip.values[place] is None)
            special = "dim" if apart else ""
            written.append(names[place], style="bold underline magenta" if place in strip.marked else special)
            written.append(gap)
            size = len(names[place].rstrip(" ↵")) if strip.running else len(names[place])
            value = strip.values[place]
            bars = " " * size if value is None else terminal_height_characters([value], strip.full or 1.0) * size
            under.append(bars + " " * (len(names[place]) - size) + gap, special or "cyan")
        has = [strip.values[place] for place in line] if strip.running else strip.values
        parts += [written, under] if any(each is not None for each in has) else [written]
    hidden = len(lines) - MOST_LINES
    if hidden > 0:
        told = f"… {hidden} of {len(lines)} lines not shown ({len(names)} tokens in all)"
        parts.append(Text(told, style="dim"))
    return parts


def _token_lines_with_bars(names: Sequence[str], room: int, gap: int) -> list[list[int]]:
    """The numbers of the tokens of each line."""
    lines: list[list[int]] = [[]]
    used = 0
    for place, name in enumerate(names):
        if used and used + len(name) > room:
            lines.append([])
            used = 0
        lines[-1].append(place)
        used += len(name) + gap
    return lines


def unknown_tokens_line(texts: Sequence[tuple[str, Status, int]]) -> list[Text]:
    """Warn in a line of tokens that the tokenizer doesn't know; return nothing if it knows all of them.

    texts: what each is called, its status, and how many tokens it has.
    """
    some = [each for each in texts if each[1].unknown]
    if not some:
        return []
    counts = [f"{len(status.unknown)} of {tokens} tokens" + (f" of {name}" if len(texts) > 1 else "")
              for name, status, tokens in some]  # fmt: skip
    pieces = list(dict.fromkeys(piece for _, status, _ in some for piece in status.unknown))
    warning = some_of(counts, FEW) + f" are unknown to the tokenizer of {some[0][1].model}: "
    warning += some_of([quoted(short(piece, 12)) for piece in pieces], FEW)
    warning += ". The model can't tell them apart. Choose a model for this language or script with --model."
    return [Text(warning, style="yellow"), Text()]
