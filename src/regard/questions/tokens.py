"""Tokenise texts, and show their tokens, ids and counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from regard.display.answer import Answer, Read
from regard.display.panels import Cell, Column, Panel, Strip, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.wording import capital, count_of_tokens, listed
from regard.models.load import load_tokenizer
from regard.text.quoting import display_text, quoted
from regard.text.tiktoken import cl100k_base, cl100k_tokens
from regard.text.tokens import Token, check_text, check_texts, encode
from regard.text.words import spelling, word_tokens, wordlike, words
from regard.textbook import dictionary

TEXTS = 3  # of several, that sentences and the first table are about
PIECES = 6  # of a word that are named
TABLE: list[list[Template]] = [
    [("The tokenizer splits {split} of {count} words, {word} into the most pieces ({pieces}).",
      lambda n: n["split"] > 1),
     ("The tokenizer splits only {word} ({pieces}).", None),
     ("The tokenizer splits none of the {count} words.", lambda n: n["count"] > 1)],
    [("The text has {tokens} for {characters}, and the tokenizer adds {added}.", None),
     ("The text has {tokens} for {characters}.", None)],
    [("The tokenizer reads {read} in the text as special.", None)],
]  # fmt: skip
SEVERAL_TEXTS: list[list[Template]] = [
    [("Text {number} has {tokens} for {characters}, with {split} of {count} words split.", lambda n: n["count"] > 1),
     ("Text {number} has {tokens} for {characters}.", None)],
]  # fmt: skip
ROWS, SEVERAL = 16, 9  # of the table on a first screen, of one text and over all of several
CUT = 120  # tokens there, of all texts
LONGEST = 1000  # characters of a token
COLUMNS = [Column("number", 0), Column("token"), Column("id", 0), Column("characters")]


def _of_text(text: str, tokens: Sequence[Token]) -> dict[str, Any]:
    """Collect the numbers of a text's sentences."""
    named = [word for word in words(tokens) if wordlike(spelling(tokens, word)) and not tokens[word[0]].special]
    split = [word for word in named if len(word) > 1]
    longest = max(split, key=len, default=range(0))
    added = [token.text for token in tokens if token.special and token.end <= token.start]
    read = [token.text for token in tokens if token.special and token.end > token.start]
    return {
        "tokens": count_of_tokens(len(tokens) - len(added)), "count": len(named), "split": len(split),
        "characters": f"{len(text):,} character{'s' * (len(text) != 1)}",
        "word": quoted(spelling(tokens, longest)) if longest else None,
        "pieces": " ".join(tokens[n].text.strip() for n in longest[:PIECES]) + " …" * (len(longest) > PIECES),
        "added": listed(list(dict.fromkeys(added))) or None, "read": listed(list(dict.fromkeys(read))) or None,
    }  # fmt: skip


def tokens_panels(answer: "Tokens") -> list[Panel]:
    """For a first screen the beginnings of the first texts and one table; then each text whole, in three panels."""
    several = len(answer.found) > 1
    first = answer.found[:TEXTS]
    each, most = (SEVERAL if several else ROWS) // len(first), CUT // len(first)
    brief = [_strip(answer, n, tokens, text, most) for n, (text, tokens) in enumerate(first, 1)]
    rows = [(n, row[:4]) for n, (_, own) in enumerate(first, 1) for row in _rows(own)[:each]]
    left = [(sum(max(0, len(own) - each) for _, own in first), "token"), (len(answer.found) - TEXTS, "text")]
    more = " and ".join(f"{count:,} more {what}{'s' * (count > 1)}" for count, what in left if count > 0)
    table = Table(
        name="First tokens", title="", columns=[*[Column("text")] * several, *COLUMNS], screen=True,
        brief=True, rows=[[str(n), *row] if several else row for n, row in rows],
        note=f"Not shown: {more}" if more else "",
    )  # fmt: skip
    whole = [panel for n, (text, own) in enumerate(answer.found, 1) for panel in _whole(answer, n, own, text)]
    return [*brief, table, *whole]


def _strip(answer: "Tokens", number: int, tokens: Sequence[Token], text: str, most: int | None = None) -> Strip:
    """A text cut into its tokens, and what of it isn't a token's. most: tokens, on a first screen."""
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
        name=_called(answer, number, "beginning" if brief else "text"), tokens=shown, before=before, digits=0,
        title=_called(answer, number, f"tokens of {answer.name}"), note=f"… and {left:,} more tokens" if left else "",
        values=[float(times[token.id]) for token in tokens[:most]], unit="times in the text", screen=brief, brief=brief,
        picture=not brief,
    )  # fmt: skip


def _whole(answer: "Tokens", number: int, tokens: Sequence[Token], text: str) -> list[Panel]:
    kinds, title = len({token.id for token in tokens}), _called(answer, number, "ids, in a row")
    counts = f"{len(tokens)} tokens, {kinds} different; {len(text)} characters, {len(text.encode())} bytes"
    columns, name = [*COLUMNS, Column("times", 0)], _called(answer, number, "tokens")
    ids: list[list[Cell]] = [[" ".join(str(token.id) for token in tokens)]]
    return [
        _strip(answer, number, tokens, text),
        Table(name=name, title=name, note=counts, columns=columns, rows=_rows(tokens)),
        Table(name=title, title=title, columns=[Column("ids")], rows=ids),
    ]


def _rows(tokens: Sequence[Token]) -> list[list[Cell]]:
    """Each token's number, text, id, characters, and how often its text has it."""
    times = Counter(token.id for token in tokens)
    places = ["special" if t.special and t.start == t.end else f"{t.start}–{t.end}" for t in tokens]
    return [[n, display_text(t.text, LONGEST), t.id, places[n], times[t.id]] for n, t in enumerate(tokens)]


def _called(answer: "Tokens", number: int, what: str) -> str:
    return f"Text {number}: {what}" if len(answer.found) > 1 else capital(what)


@dataclass(frozen=True, eq=False, repr=False)
class Tokens(Answer):
    """The tokens of texts. name: of the tokenizer; found: each text with its tokens."""

    format: ClassVar[str] = "regard tokens"
    panels = tokens_panels

    name: str
    found: Sequence[tuple[str, Sequence[Token]]]

    def findings(self) -> list[str]:
        """Report which words were split and the number of tokens, for several texts in one sentence each."""
        if len(self.found) == 1:
            return sentences(TABLE, _of_text(*self.found[0]))
        texts = enumerate(self.found[:TEXTS], 1)
        return [said for n, text in texts for said in sentences(SEVERAL_TEXTS, {"number": n} | _of_text(*text))]

    def title(self) -> str:
        """Whose tokens."""
        return f"Tokens of {self.name}"

    def rows(self) -> list[Row]:
        """One row per token: its text's number, its place, string, id and characters, and how often the text has it."""
        counted = [(tokens, Counter(token.id for token in tokens)) for _, tokens in self.found]
        return [
            {"text": number, "token": n, "string": token.text, "id": token.id, "start": token.start,
             "end": token.end, "special": token.special, "times": times[token.id]}
            for number, (tokens, times) in enumerate(counted, 1)
            for n, token in enumerate(tokens)
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """The tokenizer, and each text's tokens."""
        return {"tokenizer": self.name, "tokens": [[asdict(token) for token in each] for _, each in self.found]}


def tokens(texts: Sequence[str], tokenizer: str | None = None) -> Tokens:
    """Tokenise texts.

    tokenizer: a model's, by default the default model's; "words", a dictionary of the texts' own; or "cl100k_base".
    """
    texts = list(check_texts(texts))
    if "" in texts:
        raise RegardError("a text is empty: needs at least one character")
    about = Read(tuple((text, None) for text in texts))
    found = list(zip(texts, _read(texts, tokenizer), strict=True))
    return Tokens(tokenizer or "the default model", found, about=about)


def _read(texts: Sequence[str], tokenizer: str | None) -> list[Sequence[Token]]:
    if tokenizer == "words":
        numbers = dictionary(" ".join(texts))
        return [word_tokens(text, numbers) for text in texts]
    if tokenizer == "cl100k_base":
        encoding = cl100k_base()
        return [cl100k_tokens(text, encoding) for text in texts]
    opened, several = load_tokenizer(tokenizer), len(texts) > 1
    named = [(text, f"text {n}" if several else "text") for n, text in enumerate(texts, 1)]
    return [encode(opened, check_text(*each)).tokens for each in named]
