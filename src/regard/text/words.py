"""Find words in a text, and the tokens that spell them."""

import difflib
import functools
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import regex

from regard.errors import RegardError
from regard.text.quoting import some_of
from regard.text.tokens import Token, shortened

# Where words begin and end by Unicode's rules (UAX 29), except that "H₂O" is one word, and that a mark or invisible
# character after a blank isn't part of a word.
_SMALL = "[²³¹⁰-⁹₀-₉]"  # superscript and subscript digits
_BOUNDARY = regex.compile(
    rf"\b(?!(?<=\w){_SMALL})(?!(?<={_SMALL})\w)|(?<=(?:^|\s)\p{{WB=Format}}{{0,8}})(?=\S)|(?<=\S)(?=\s)", regex.WORD
)
# A query may also begin or end at a sign inside a word ("Bob" is found in "Bob's"), or at a Katakana character.
_SIGNS = "".join(rf"\p{{WB={name}}}" for name in ("MidLetter", "MidNum", "MidNumLet", "Single_Quote", "Double_Quote"))
_SIGNS = rf"[{_SIGNS}\p{{WB=Katakana}}]"
_BOUNDARY_OF_QUERY = regex.compile(rf"{_BOUNDARY.pattern}|(?<={_SIGNS})|(?={_SIGNS})", regex.WORD)
_CLUSTER = regex.compile(r"\s+|\X\p{WB=Format}*")  # blanks, or a character with its combining marks
_LETTER = regex.compile(r"[\p{Alphabetic}\p{N}_]")
_INVISIBLE = regex.compile(r"\p{WB=Format}+")  # soft hyphens and direction marks
ALIKE = str.maketrans("’‘ʼ＇׳“”״‐‑", 5 * "'" + 3 * '"' + "--")  # typographic signs, and their ASCII forms

MAX_QUOTED = 4  # occurrences quoted in a message


@dataclass(frozen=True)
class Word:
    """One occurrence of a word: its characters [start, end) and the numbers of the tokens that spell it."""

    text: str
    start: int
    end: int
    tokens: tuple[int, ...]


Place = str | Word | int | tuple[str, int]  # a word, an occurrence such as ("bank", 1), or a token's number


def find_word(text: str, tokens: Sequence[Token], word: str) -> list[Word]:
    """Find every occurrence of a word in a text, in order.

    A lower-case query matches any case. A query with capitals matches its exact case, or any case if that doesn't
    occur. Composed and decomposed accents are equal, as are typographic and plain apostrophes, quotation marks and
    hyphens. So are blanks of any kind and number. A word ends by Unicode's rules (UAX 29) or at a sign inside it: both
    "Bob's" and "Bob" are found. In scripts without blanks (Chinese, Japanese, Thai), any run of characters is found.
    """
    occurrences = []
    for start, end in find_spans(text, word):
        inside = tuple(n for n, t in enumerate(tokens) if t.start < end and t.end > start)
        if not inside:
            raise RegardError(f"word {word!r} has no token: the tokenizer drops its characters")
        occurrences.append(Word(text[start:end], start, end, inside))
    return occurrences


def is_word(value: object) -> bool:
    """Return whether a value names a word: a string, a `Word`, or (word, number of the occurrence)."""
    if isinstance(value, tuple):
        return len(value) == 2 and isinstance(value[0], str) and hasattr(value[1], "__index__")
    return isinstance(value, (str, Word))


def only_word(text: str, tokens: Sequence[Token], value: "str | Word | tuple[str, int]") -> Word:
    """Find the only occurrence of a word, or a numbered occurrence: `("bank", 1)` is the second "bank"."""
    if isinstance(value, Word):
        if text[value.start : value.end] != value.text or not all(n < len(tokens) for n in value.tokens):
            label = f"word {value.text!r} at character {value.start}"
            raise RegardError(f"{label} is from a different text than {shortened(text)}")
        return value
    word, number = value if isinstance(value, tuple) else (value, None)
    occurrences = find_word(text, tokens, word)
    if number is not None and not -len(occurrences) <= number < len(occurrences):
        count = len(occurrences)
        hint = "once: use 0" if count == 1 else f"{count} times: use 0 to {count - 1}"
        raise RegardError(f"word {word!r}, occurrence {number}: it occurs {hint}")
    if number is None and len(occurrences) > 1:
        starts = ", ".join(str(occurrence.start) for occurrence in occurrences)
        numbered = enumerate(occurrences[:MAX_QUOTED])
        examples = ", ".join(f"({word!r}, {n}) for {_quote_in_context(text, occurrence)}" for n, occurrence in numbered)
        more = f", and {len(occurrences) - MAX_QUOTED} more" if len(occurrences) > MAX_QUOTED else ""
        times = f"{len(occurrences)} times (at characters {starts})"
        raise RegardError(f"word {word!r} occurs {times}: pass {examples}{more}, or one of trace.word({word!r})")
    return occurrences[number or 0]


def letters_of_occurrence(number: int) -> str:
    """Return the letters that name an occurrence in tables: 0 → a, 25 → z, 26 → aa."""
    return (letters_of_occurrence(number // 26 - 1) if number > 25 else "") + chr(ord("a") + number % 26)


def find_spans(text: str, word: str) -> list[tuple[int, int]]:
    """Find the characters [start, end) of every occurrence of a word, like `find_word`, but without tokens."""
    if not isinstance(word, str):
        raise RegardError(f"word: got {type(word).__name__}, expected a string")
    query = "".join(map(_normalise, _CLUSTER.findall(word.strip())))
    if not query:
        raise RegardError("word is empty: pass a word of the text")
    exact = query != query.casefold()
    spans = _spans_of_word(text, query, fold=not exact) or (_spans_of_word(text, query, fold=True) if exact else [])
    if not spans:
        names = {name.casefold(): name for name in reversed(words_of(text))}
        best = difflib.get_close_matches(query.casefold(), names, n=3, cutoff=0.5)
        known = some_of([*map(repr, words_of(text))], 12) or "none"
        hint = f"the nearest are {', '.join(repr(names[name]) for name in best)}" if best else f"its words are {known}"
        raise RegardError(f"word {word!r} is not in the text {shortened(text)}: {hint}")
    return spans


def which_text(number: int, count: int) -> str:
    """Return a text's number, counted from 1, for a message: ' 2' if there are several texts, otherwise ''."""
    return f" {number}" if count > 1 else ""


def word_in_neither_text(in_text: object, in_target: object, nth: str = "") -> RegardError:
    """Return the error for a word that is neither in a text nor in its target. nth: from `which_text`."""
    return RegardError(f"text{nth}: {in_text}; target{nth}: {in_target}")


def words_of(text: str) -> list[str]:
    """List the words of a text, once each, in order of appearance."""
    parts = (text[start:end] for start, end in pairwise(sorted(boundaries(text))))
    return list(dict.fromkeys(filter(wordlike, parts)))


def word_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the characters [start, end) of each word for an embedding index: "whale's" becomes "whale" and "s"."""
    for start, end in pairwise(sorted(boundaries(text, _BOUNDARY_OF_QUERY))):
        if _LETTER.search(text, start, end):
            yield start, end


@functools.lru_cache(maxsize=32)
def boundaries(text: str, pattern: Any = _BOUNDARY) -> frozenset[int]:
    """Find where words begin and end: at the ends of the text, and at matches that don't part a character's marks."""
    edges = {0, len(text), *(match.start() for match in pattern.finditer(text))}
    return frozenset(edges if text.isascii() else edges & {0, *(m.end() for m in _CLUSTER.finditer(text))})


def _quote_in_context(text: str, word: Word, reach: int = 12) -> str:
    """Quote an occurrence with up to `reach` characters on either side."""
    start, end = max(0, word.start - reach), min(len(text), word.end + reach)
    return repr("…" * (start > 0) + text[start:end] + "…" * (end < len(text)))


def _spans_of_word(text: str, query: str, *, fold: bool) -> list[tuple[int, int]]:
    """Find the characters [start, end) of a word in a text, after composing accents and folding case."""
    clusters = [match.span() for match in _CLUSTER.finditer(text)]
    ends = boundaries(text, _BOUNDARY_OF_QUERY)
    normal, owner = "", []
    for number, (start, end) in enumerate(clusters):
        piece = _normalise(text[start:end])
        piece = piece.casefold() if fold else piece
        normal += piece
        owner += [number] * len(piece)
    needle = query.casefold() if fold else query
    spans, position = [], normal.find(needle)
    while position >= 0:
        first, last = owner[position], owner[position + len(needle) - 1]
        at_edges = (position == 0 or owner[position - 1] != first) and (
            position + len(needle) == len(normal) or owner[position + len(needle)] != last
        )
        start, end = clusters[first][0], clusters[last][1]
        if at_edges and start in ends and end in ends:
            spans.append((start, end))
            position = normal.find(needle, position + len(needle))
        else:
            position = normal.find(needle, position + 1)
    return spans


@functools.lru_cache(maxsize=4096)
def _normalise(cluster: str) -> str:
    """Normalise a character or a run of blanks for comparison: compose it, and use plain signs and a single blank."""
    return _INVISIBLE.sub("", unicodedata.normalize("NFC", cluster)).translate(ALIKE) if cluster.strip() else " "


_MARKS: Any = regex.compile(r"\p{M}*")
LONGEST = 64  # maximum characters of a word: in a longer run, such as a code, each token is a word
# English function words, which are less informative than content words. Rankings put links to them last.
_AUXILIARIES = """
am is are was were be been being do does did have has had having can could may might must shall should will would
"""
_PRONOUNS = """
i me my mine myself you your yours yourself he him his himself she her hers herself it its itself we us our ours
ourselves they them their theirs themselves this that these those who whom whose which one
"""
_OTHERS = """
a an the some any each every either neither both all such no another other what ones something anything nothing
about above across after against along among around as at before behind below beneath beside between beyond by despite
down during except for from in inside into like near of off on onto out outside over past since than through to toward
towards under until up upon via with within without
and or nor but so yet if because although though while whereas unless when where whether how why then there here
not never only also just even very too more most less least quite rather again once ever still already
"""
PRONOUNS = frozenset(_PRONOUNS.split())
FUNCTION_WORDS = PRONOUNS | {*_AUXILIARIES.split(), *_OTHERS.split(), *(f"{w}n't" for w in _AUXILIARIES.split())}
FUNCTION_WORDS |= {"can't", "won't", "shan't"}


def wordlike(text: str) -> bool:
    """Return whether a text has a letter or a digit."""
    return any(map(str.isalnum, text))


def words(tokens: Sequence[Token]) -> list[range]:
    """Group token numbers into words, in order. Special tokens and punctuation marks are separate words."""
    edges = boundaries(max((token.source for token in tokens), key=len, default=""))
    starts = [0] if tokens else []
    for number, (before, token) in enumerate(pairwise(tokens), 1):
        overlap = token.start < before.end  # two tokens are bytes of one character, or patches of one image
        shared = range(token.start + 1, before.end) if overlap else range(before.end, token.start + 1)
        if token.special or before.special or not edges.isdisjoint(shared):
            starts.append(number)
    spans = [range(start, stop) for start, stop in pairwise([*starts, len(tokens)])]
    fits = [len(spelling(tokens, word)) <= LONGEST for word in spans]
    pieces = ([word] if fit else [range(n, n + 1) for n in word] for word, fit in zip(spans, fits, strict=True))
    return [part for parts in pieces for part in parts]


def spelling(tokens: Sequence[Token], word: Sequence[int]) -> str:
    """Return the characters of a word in its text, or the names of special tokens, which have none."""
    first, last = tokens[word[0]], tokens[word[-1]]
    end = _MARKS.match(last.source, last.end).end()  # combining marks without a token belong to the word
    return last.source[first.start : end].strip() or "".join(tokens[n].text for n in word).strip()


def word_tokens(text: str, numbers: Mapping[str, int]) -> list[Token]:
    """Tokenize a text with a dictionary of words; commas are dropped. numbers: from `regard.textbook.dictionary`.

    Raises:
        RegardError: a word isn't in the dictionary.
    """
    tokens = []
    for index, match in enumerate(re.finditer(r"[^\s,]+(?:,+[^\s,]+)*", text)):
        word = match[0].replace(",", "")
        if word not in numbers:
            raise RegardError(f"the dictionary of {len(numbers)} words has no {word!r}")
        tokens.append(Token(numbers[word], word, *match.span(), index, False, text))
    return tokens


def is_content_word(word: str) -> bool:
    """Return whether a word has a letter or a digit and isn't an English function word."""
    return word.strip().casefold().replace("’", "'") not in FUNCTION_WORDS and wordlike(word)
