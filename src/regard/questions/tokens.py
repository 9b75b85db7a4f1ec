"""Tokenise texts, and show their tokens, ids and counts."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from regard.display.answer import Answer, Read
from regard.display.panels import Cell, Column, Panel, Strip, Table
from regard.display.sentences import Template, sentences
from regard.errors import RegardError
from regard.explain.wording import capital, count_of_tokens, listed
from regard.models.load import load_tokenizer
from regard.shown import Row
from regard.text.quoting import display_text, quoted
from regard.text.tiktoken import cl100k_base, cl100k_tokens
from regard.text.tokens import Token, check_text, check_texts, encode
from regard.text.words import spelling, word_tokens, wordlike, words
from regard.textbook import dictionary

MAX_TEXTS = 3  # maximum texts in sentences and in the first table
MAX_PIECES = 6  # maximum pieces of a word in sentences
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
ROWS, SEVERAL = 16, 9  # rows of the first table, for one text and for several texts together
MAX_TOKENS = 120  # on the first screen, for all texts together
MAX_CHARACTERS = 1000  # of a token
COLUMNS = [Column("number", 0), Column("token"), Column("id", 0), Column("characters")]


def _text_numbers(text: str, tokens: Sequence[Token]) -> dict[str, Any]:
    """Return the numbers and words with which to fill the templates of a text's sentences."""
    plain = [word for word in words(tokens) if wordlike(spelling(tokens, word)) and not tokens[word[0]].special]
    split = [word for word in plain if len(word) > 1]
    longest = max(split, key=len, default=range(0))
    added = [token.text for token in tokens if token.special and token.end <= token.start]
    read = [token.text for token in tokens if token.special and token.end > token.start]
    return {
        "tokens": count_of_tokens(len(tokens) - len(added)), "count": len(plain), "split": len(split),
        "characters": f"{len(text):,} character{'s' * (len(text) != 1)}",
        "word": quoted(spelling(tokens, longest)) if longest else None,
        "pieces": " ".join(tokens[n].text.strip() for n in longest[:MAX_PIECES]) + " …" * (len(longest) > MAX_PIECES),
        "added": listed(list(dict.fromkeys(added))) or None, "read": listed(list(dict.fromkeys(read))) or None,
    }  # fmt: skip


def tokens_panels(answer: "Tokens") -> list[Panel]:
    """Return panels with the beginnings of the first texts, one table, and then three panels for each whole text."""
    several = len(answer.found) > 1
    first = answer.found[:MAX_TEXTS]
    limit, token_limit = (SEVERAL if several else ROWS) // len(first), MAX_TOKENS // len(first)
    brief = [_text_strip(answer, n, tokens, text, token_limit) for n, (text, tokens) in enumerate(first, 1)]
    rows = [(n, row[:4]) for n, (_, tokens) in enumerate(first, 1) for row in _token_rows(tokens)[:limit]]
    rest = [(sum(max(0, len(tokens) - limit) for _, tokens in first), "token"), (len(answer.found) - MAX_TEXTS, "text")]
    more = " and ".join(f"{count:,} more {kind}{'s' * (count > 1)}" for count, kind in rest if count > 0)
    table = Table(
        name="First tokens", title="", columns=[*[Column("text")] * several, *COLUMNS], screen=True,
        brief=True, rows=[[str(n), *row] if several else row for n, row in rows],
        note=f"Not shown: {more}" if more else "",
    )  # fmt: skip
    full = [panel for n, (text, tokens) in enumerate(answer.found, 1) for panel in _full_text(answer, n, tokens, text)]
    return [*brief, table, *full]


def _text_strip(answer: "Tokens", number: int, tokens: Sequence[Token], text: str, top: int | None = None) -> Strip:
    """Return a strip of a text's tokens and the characters between them. top: the maximum number of tokens."""
    strings: list[str] = []
    before: list[str] = []
    at = 0
    for token in tokens[:top]:
        before.append(text[at : token.start])
        in_text = token.start >= at and token.end > token.start and not token.text.startswith("\\x")
        strings.append(text[token.start : token.end] if in_text else token.text)
        at = max(at, token.end)
    times, brief, rest = Counter(token.id for token in tokens), top is not None, len(tokens) - len(strings)
    return Strip(
        name=_heading(answer, number, "beginning" if brief else "text"), tokens=strings, before=before, digits=0,
        title=_heading(answer, number, f"tokens of {answer.name}"), note=f"… and {rest:,} more tokens" if rest else "",
        values=[float(times[token.id]) for token in tokens[:top]], unit="times in the text", screen=brief, brief=brief,
        picture=not brief,
    )  # fmt: skip


def _full_text(answer: "Tokens", number: int, tokens: Sequence[Token], text: str) -> list[Panel]:
    """Return a whole text's panels: a strip of its tokens, a table of them, and their ids in one row."""
    kinds, title = len({token.id for token in tokens}), _heading(answer, number, "ids, in a row")
    counts = f"{len(tokens)} tokens, {kinds} different; {len(text)} characters, {len(text.encode())} bytes"
    columns, name = [*COLUMNS, Column("times", 0)], _heading(answer, number, "tokens")
    ids: list[list[Cell]] = [[" ".join(str(token.id) for token in tokens)]]
    return [
        _text_strip(answer, number, tokens, text),
        Table(name=name, title=name, note=counts, columns=columns, rows=_token_rows(tokens)),
        Table(name=title, title=title, columns=[Column("ids")], rows=ids),
    ]


def _token_rows(tokens: Sequence[Token]) -> list[list[Cell]]:
    """List each token's number, text, id, character range, and count in its text."""
    times = Counter(token.id for token in tokens)
    ranges = ["special" if t.special and t.start == t.end else f"{t.start}–{t.end}" for t in tokens]
    return [[n, display_text(t.text, MAX_CHARACTERS), t.id, ranges[n], times[t.id]] for n, t in enumerate(tokens)]


def _heading(answer: "Tokens", number: int, title: str) -> str:
    return f"Text {number}: {title}" if len(answer.found) > 1 else capital(title)


@dataclass(frozen=True, eq=False, repr=False)
class Tokens(Answer):
    """Tokens of texts. name: the tokenizer's name. found: (text, tokens) for each text."""

    format = "regard tokens"
    panels = tokens_panels

    name: str
    found: Sequence[tuple[str, Sequence[Token]]]

    def findings(self) -> list[str]:
        """Return sentences on split words and token counts. Each of several texts has a single sentence."""
        if len(self.found) == 1:
            return sentences(TABLE, _text_numbers(*self.found[0]))
        texts = enumerate(self.found[:MAX_TEXTS], 1)
        return [line for n, text in texts for line in sentences(SEVERAL_TEXTS, {"number": n} | _text_numbers(*text))]

    def title(self) -> str:
        """Return the title, which names the tokenizer."""
        return f"Tokens of {self.name}"

    def rows(self) -> list[Row]:
        """List one row per token: text number, position, string, id, character range, and count in the text."""
        counted = [(tokens, Counter(token.id for token in tokens)) for _, tokens in self.found]
        return [
            {"text": number, "token": n, "string": token.text, "id": token.id, "start": token.start,
             "end": token.end, "special": token.special, "times": times[token.id]}
            for number, (tokens, times) in enumerate(counted, 1)
            for n, token in enumerate(tokens)
        ]  # fmt: skip

    def data(self) -> dict[str, object]:
        """Return the tokenizer's name and each text's tokens."""
        return {"tokenizer": self.name, "tokens": [[asdict(token) for token in text] for _, text in self.found]}


def tokens(texts: Sequence[str], tokenizer: str | None = None) -> Tokens:
    """Tokenise texts with a model's tokenizer, a dictionary of the texts' words, or cl100k_base.

    tokenizer: a model's name, "words" (the dictionary) or "cl100k_base". Default: the default model.
    """
    texts = list(check_texts(texts))
    if "" in texts:
        raise RegardError("a text is empty: needs at least one character")
    about = Read(tuple((text, None) for text in texts))
    pairs = list(zip(texts, _tokenize_texts(texts, tokenizer), strict=True))
    return Tokens(tokenizer or "the default model", pairs, about=about)


def _tokenize_texts(texts: Sequence[str], tokenizer: str | None) -> list[Sequence[Token]]:
    """Return each text's tokens, with a dictionary, tiktoken or a model's tokenizer."""
    if tokenizer == "words":
        numbers = dictionary(" ".join(texts))
        return [word_tokens(text, numbers) for text in texts]
    if tokenizer == "cl100k_base":
        encoding = cl100k_base()
        return [cl100k_tokens(text, encoding) for text in texts]
    opened, several = load_tokenizer(tokenizer), len(texts) > 1
    labelled = [(text, f"text {n}" if several else "text") for n, text in enumerate(texts, 1)]
    return [encode(opened, check_text(*pair)).tokens for pair in labelled]
