"""Make the panels of tokens: each text cut into them, then each token with its id, its characters and its count."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Panel, Strip, Table
from regard.explain.wording import capital
from regard.questions.tokens.sentences import TEXTS
from regard.text.quoting import spelled
from regard.text.tokens import Token

if TYPE_CHECKING:
    from regard.questions.tokens.answer import Tokens

ROWS, SEVERAL = 16, 9  # of the table on a first screen, of one text and over all of several
CUT = 120  # tokens there, of all texts
LONGEST = 1000  # characters of a token
COLUMNS = [Column("number", 0), Column("token"), Column("id", 0), Column("characters")]


def of_tokens(found: "Tokens") -> list[Panel]:
    """For a first screen the beginnings of the first texts and one table; then each text whole, in three panels."""
    several = len(found.found) > 1
    first = found.found[:TEXTS]
    each, most = (SEVERAL if several else ROWS) // len(first), CUT // len(first)
    brief = [_strip(found, n, tokens, text, most) for n, (text, tokens) in enumerate(first, 1)]
    rows = [(n, row[:4]) for n, (_, own) in enumerate(first, 1) for row in _rows(own)[:each]]
    left = [(sum(max(0, len(own) - each) for _, own in first), "token"), (len(found.found) - TEXTS, "text")]
    more = " and ".join(f"{count:,} more {what}{'s' * (count > 1)}" for count, what in left if count > 0)
    table = Table(
        name="First tokens", title="", columns=[*[Column("text")] * several, *COLUMNS], screen=True,
        brief=True, rows=[[str(n), *row] if several else row for n, row in rows],
        note=f"Not shown: {more}" if more else "",
    )  # fmt: skip
    whole = [panel for n, (text, own) in enumerate(found.found, 1) for panel in _whole(found, n, own, text)]
    return [*brief, table, *whole]


def _strip(found: "Tokens", number: int, tokens: Sequence[Token], text: str, most: int | None = None) -> Strip:
    """A text cut into its tokens, and what of it is no token's. most: tokens, on a first screen."""
    shown: list[str] = []
    before: list[str] = []
    at = 0
    for token in tokens[:most]:
        before.append(text[at : token.start])
        own = token.start >= at and token.end > token.start and not token.text.startswith("\\x")
        shown.append(text[token.start : token.end] if own else token.text)
        at = max(at, token.end)
    times, brief, left = Counter(token.id for token in tokens), most is not None, len(tokens) - len(shown)
    return Strip(
        name=_called(found, number, "beginning" if brief else "text"), tokens=shown, before=before, digits=0,
        title=_called(found, number, f"tokens of {found.name}"), note=f"… and {left:,} more tokens" if left else "",
        values=[float(times[token.id]) for token in tokens[:most]], unit="times in the text", screen=brief, brief=brief,
        picture=not brief,
    )  # fmt: skip


def _whole(found: "Tokens", number: int, tokens: Sequence[Token], text: str) -> list[Panel]:
    kinds, title = len({token.id for token in tokens}), _called(found, number, "ids, in a row")
    counts = f"{len(tokens)} tokens, {kinds} different; {len(text)} characters, {len(text.encode())} bytes"
    columns, name = [*COLUMNS, Column("times", 0)], _called(found, number, "tokens")
    ids: list[list[Cell]] = [[" ".join(str(token.id) for token in tokens)]]
    return [
        _strip(found, number, tokens, text),
        Table(name=name, title=name, note=counts, columns=columns, rows=_rows(tokens)),
        Table(name=title, title=title, columns=[Column("ids")], rows=ids),
    ]


def _rows(tokens: Sequence[Token]) -> list[list[Cell]]:
    """Each token's number, text, id, characters, and how often its text has it."""
    times = Counter(token.id for token in tokens)
    places = ["special" if t.special and t.start == t.end else f"{t.start}–{t.end}" for t in tokens]
    return [[n, spelled(t.text, LONGEST), t.id, places[n], times[t.id]] for n, t in enumerate(tokens)]


def _called(found: "Tokens", number: int, what: str) -> str:
    return f"Text {number}: {what}" if len(found.found) > 1 else capital(what)
