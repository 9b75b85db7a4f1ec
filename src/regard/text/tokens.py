"""Encode a text as tokens with their character positions, for any tokenizer."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import InitVar, dataclass, field, fields, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakKeyDictionary

import regex

from regard.errors import RegardError, first_line

# Cached spellings of each tokenizer's ids, because decoding takes longer than everything else here.
_spelled: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()

BLANK = "\u2581"  # sentencepiece vocabularies spell a blank like this
AS_SPECIAL = "Read as a special token"  # how the note begins
ROLES = ("system", "developer", "user", "assistant", "tool")  # of messages
TEXT = "text"  # role of each text of a pair

# How byte-level vocabularies (GPT-2, Radford et al. 2019) spell bytes: a visible Latin-1 character as itself, and the
# other bytes, in order, as the characters from U+0100 on.
_VISIBLE = (*range(33, 127), *range(161, 173), *range(174, 256))
_INVISIBLE = tuple(byte for byte in range(256) if byte not in _VISIBLE)
_BYTES = {chr(byte): byte for byte in _VISIBLE} | {chr(256 + n): byte for n, byte in enumerate(_INVISIBLE)}


@dataclass(frozen=True)
class Token:
    """A token of a text. start and end are its position in the text's characters (equal if it has none).

    word is the tokenizer's number of the word that contains this token, None for special tokens. turn names the message
    of a chat, or the text of a pair, that contains the token, "" if neither does. source is the text of start and end.
    """

    turn = ""  # not a field: `ChatToken` has it

    id: int
    text: str
    start: int
    end: int
    word: int | None
    special: bool
    if TYPE_CHECKING:
        source: str = ""
    else:  # not a field: asdict would write the whole text with each token
        source: InitVar[str] = ""

        def __post_init__(self, source: str) -> None:
            object.__setattr__(self, "source", source)

    @property
    def characters(self) -> str:
        """The token's characters in the text, or its spelling if it has none."""
        return self.source[self.start : self.end] or self.text


@dataclass(frozen=True)
class ChatToken(Token):
    """A token in a message of a chat, or in a text of a pair. turn: the message or text: "user 1", "text 2"."""

    turn: str = ""


@dataclass(frozen=True)
class Turn:
    """A message of a chat, or a text of a pair: its role, characters and tokens."""

    role: str
    start: int
    end: int
    tokens: tuple[int, ...] = ()


def tokens_in_turns(tokens: Sequence[Token], turns: Sequence[Turn]) -> tuple[Token, ...]:
    """Label each token of a message with its turn, numbered from 1 by role. Leave other tokens unchanged."""
    result = list(tokens)
    for n, turn in enumerate(turns):
        nth = sum(other.role == turn.role for other in turns[: n + 1])
        for index in turn.tokens:
            values = {item.name: getattr(tokens[index], item.name) for item in fields(Token)}
            result[index] = ChatToken(**values, source=tokens[index].source, turn=f"{turn.role} {nth}")
    return tuple(result)


@dataclass(frozen=True)
class Encoded:
    """A text as model input. unknown, dropped: the parts of the text that became unknown tokens or no tokens.

    names: spells any id as the tokenizer does, None without a tokenizer. turns: of a chat or a pair.
    """

    text: str
    tokens: tuple[Token, ...]
    segments: tuple[int, ...] | None
    unknown: tuple[str, ...]
    dropped: tuple[str, ...]
    notes: tuple[str, ...] = ()
    names: Callable[[int], str] | None = field(default=None, compare=False, repr=False)
    turns: tuple[Turn, ...] = ()

    @property
    def ids(self) -> list[int]:
        """The token ids, including special tokens."""
        return [token.id for token in self.tokens]

    def after(self, tokenizer: Any, start: int) -> "Encoded":
        """Shift the text by one to get a decoder's input: a start token first, and no last token."""
        first = Token(start, readable_token(tokenizer, start), 0, 0, None, True, self.text)
        return replace(self, tokens=(first, *self.tokens[:-1]), segments=None)


@dataclass(frozen=True)
class Spelled:
    """A function that returns an id's stored spelling, or else its number."""

    known: dict[int, str]

    def __call__(self, number: int) -> str:
        """Return the stored spelling of an id, or "id" and its number."""
        return self.known.get(number, f"id {number}")


def encoded_ids(ids: Sequence[int]) -> Encoded:
    """Encode token ids without a tokenizer: each id is a word, spelled as its number."""
    tokens: list[Token] = []
    text = " ".join(map(str, ids))
    for index, number in enumerate(ids):
        start = tokens[-1].end + 1 if tokens else 0
        tokens.append(Token(number, str(number), start, start + len(str(number)), index, False, text))
    return Encoded(text, tuple(tokens), None, (), ())


def check_text(text: Any, name: str = "text") -> str:
    """Check that a text is a string of valid Unicode with at least one word, and return it."""
    if not isinstance(text, str):
        raise RegardError(f"{name}: got {type(text).__name__}, expected a string")
    if not text.strip():
        raise RegardError(f"{name} is {'blank' if text else 'empty'}: pass at least one word")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        lone = f"character {error.start} is the lone surrogate U+{ord(text[error.start]):04X}"
        raise RegardError(f"{name} is not valid Unicode: {lone}") from None
    return text


@overload
def check_texts(texts: str | Iterable[str], name: str = "texts", alternative: str = "") -> Iterable[str]: ...
@overload
def check_texts(texts: Any, name: str = "texts", alternative: str = "") -> Iterable[Any]: ...
def check_texts(texts: Any, name: str = "texts", alternative: str = "") -> Iterable[object]:
    """Return texts, or a single text, as an iterable. alternative: names another valid argument in the error."""
    keys = isinstance(texts, (bytes, Mapping)) or hasattr(texts, "columns")
    if keys or not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) == 0:
        raise RegardError(f"{name}: got {type(texts).__name__}, expected a string or several of them{alternative}")
    return [texts] if isinstance(texts, str) else texts


def check_messages(messages: Any) -> list[dict[str, str]]:
    """Check that a value is a chat, [{"role": …, "content": …}, …], and return a copy."""
    if not isinstance(messages, (list, tuple)) or not messages:
        raise RegardError(f"chat: got {type(messages).__name__}, expected a list of messages, at least one")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict) or message.keys() != {"role", "content"}:
            raise RegardError(f'chat: message {number} needs a "role" and a "content", and no other entry is read')
        if message["role"] not in ROLES:
            raise RegardError(
                f"chat: message {number} has the role {str(message['role'])[:40]!r}, expected one of {', '.join(ROLES)}"
            )
        if not isinstance(message["content"], str):
            kind = type(message["content"]).__name__
            raise RegardError(f"chat: the content of message {number} is a {kind}, expected a text")
    return [dict(message) for message in messages]


def encode(tokenizer: Any, text: str) -> Encoded:
    """Encode a text as tokens with their character positions, including special tokens, without truncation."""
    return encode_all(tokenizer, [text])[0]


def encode_all(
    tokenizer: Any, texts: Sequence[str], *, target: bool = False, counted: Callable[[int, int], None] | None = None,
    framed: bool = False,
) -> list[Encoded]:  # fmt: skip
    """Encode several texts on all cores, as in `encode`. counted: called with each text's number and token count."""
    encoding = _call_tokenizer(tokenizer, texts, target, framed)
    if counted is not None:
        for n, ids in enumerate(encoding["input_ids"]):
            counted(n, len(ids))
    return [_build_encoded(tokenizer, text, encoding, n) for n, text in enumerate(texts)]


def encode_parts(tokenizer: Any, parts: Sequence[str], *, pair: bool) -> Encoded:
    """Encode a pair of texts with the tokenizer's template, or one text passed as a list of words.

    The encoded text has both texts on separate lines, or the words separated by blanks.
    """
    text = ("\n" if pair else " ").join(parts)
    starts = list(accumulate((len(part) + 1 for part in parts), initial=0))
    if not pair:
        encoding = _call_tokenizer(tokenizer, [list(parts)], False, is_split_into_words=True)
        return _build_encoded(tokenizer, text, encoding, 0, lambda word, _: starts[word or 0])
    encoding = _call_tokenizer(tokenizer, parts[:1], False, text_pair=list(parts[1:]))
    encoded = _build_encoded(tokenizer, text, encoding, 0, lambda _, part: starts[part or 0])
    ends = [(start, start + len(part)) for start, part in zip(starts, parts, strict=False)]
    turns = [Turn(TEXT, start, end, tokens_between(encoded, start, end)) for start, end in ends]
    return replace(encoded, tokens=tokens_in_turns(encoded.tokens, turns), turns=tuple(turns))


def tokens_between(encoded: Encoded, start: int, end: int) -> tuple[int, ...]:
    """Return the numbers of the tokens that overlap the characters [start, end)."""
    return tuple(n for n, t in enumerate(encoded.tokens) if start < min(t.end, end) and t.start < end)


def given_texts(text: str, turns: Sequence[Turn]) -> tuple[str, str | None]:
    """Return a text as it was passed to a model, and the second text, if two were read together."""
    parts = [text[turn.start : turn.end] for turn in turns if turn.role == TEXT]
    return (parts[0], parts[1]) if len(parts) == 2 else (text, None)


def count_tokens(tokenizer: Any, text: str) -> int:
    """Count the tokens of a text, including special tokens, in a fraction of the time that `encode` takes."""
    return len(_call_tokenizer(tokenizer, [text], False)["input_ids"][0])


def _call_tokenizer(tokenizer: Any, texts: Sequence[Any], target: bool, framed: bool = False, **options: Any) -> Any:
    """Call the tokenizer on texts without truncation or padding, and return its result."""
    fast = bool(getattr(tokenizer, "is_fast", False))
    options |= {"text_target" if target else "text": list(texts)}
    options |= {"add_special_tokens": False} if framed else {}
    with tokenizer_errors("the tokenizer cannot read the text"):
        return tokenizer(**options, return_offsets_mapping=fast, truncation=False, padding=False, verbose=False)


@contextmanager
def tokenizer_errors(prefix: str) -> Iterator[None]:
    """Convert a tokenizer's error in the block to a one-line RegardError that begins with `prefix`."""
    try:
        yield
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":  # of the Rust library
            raise
        raise RegardError(f"{prefix}: {first_line(error)}") from error


def _build_encoded(
    tokenizer: Any, text: str, encoding: Any, n: int, start_of: Callable[[int | None, int | None], int] | None = None
) -> Encoded:
    """Build text n with its tokens from a tokenizer's result for several texts.

    start_of: returns the start of the word, or of the text of a pair, from which the tokenizer counts characters.
    """
    ids = encoding["input_ids"][n]
    notes: tuple[str, ...] = ()
    if getattr(tokenizer, "is_fast", False):
        words, offsets = encoding.word_ids(n), encoding["offset_mapping"][n]
        if start_of is not None:
            begins = map(start_of, words, encoding.sequence_ids(n))
            offsets = [(begin + start, begin + end) for begin, (start, end) in zip(begins, offsets, strict=True)]
    else:
        words, offsets = _align_tokens(tokenizer, ids, text)
        notes = ("The tokenizer gives no character positions. regard found them by matching its tokens with the text.",)
    # where characters end, including their combining marks; only needed if normalising may change the text
    edges = [] if unicodedata.is_normalized("NFKC", text) else [0, *(x.end() for x in regex.finditer(r"\X", text))]
    dropped = _find_lost(tokenizer, text, offsets, edges)
    if edges:  # combining marks without a token belong to their character's token
        starts = [*sorted(start for start, end in offsets if end > start), len(text)]
        offsets = [
            (start, min(edges[bisect_left(edges, end)], starts[bisect_left(starts, end)]) if end > start else end)
            for start, end in offsets
        ]
    specials, unknown_id = special_ids(tokenizer), tokenizer.unk_token_id
    spellings = _spelled.setdefault(tokenizer, {})
    spellings |= {number: readable_token(tokenizer, number) for number in {*ids} if number not in spellings}

    tokens = tuple(
        Token(
            number, spellings[number], start, end, word,
            text[start:end].strip() == spellings[number]  # else its characters are unknown
            if number == unknown_id and end > start else number in specials or word is None, text,
        )
        for number, (start, end), word in zip(ids, offsets, words, strict=True)
    )  # fmt: skip
    if all(token.special for token in tokens):
        has_text = any(token.end > token.start for token in tokens)
        reason = "it consists of special tokens" if has_text else "the tokenizer drops all of its characters"
        raise RegardError(f"text {shortened(text)}: no tokens are left, {reason}")
    literal = dict.fromkeys(token.text for token in tokens if token.special and token.end > token.start)
    if literal:
        notes += (f"{AS_SPECIAL}: {', '.join(literal)}.",)
    unknown = tuple(token.characters for token in tokens if token.id == unknown_id and not token.special)
    segments = tuple(encoding["token_type_ids"][n]) if "token_type_ids" in encoding else None
    names = partial(readable_token, tokenizer)
    return Encoded(text, tokens, segments, unknown, dropped, notes, names)


def special_ids(tokenizer: Any) -> set[int]:
    """Return the ids of special tokens. The unknown token is one only if it also begins or ends texts."""
    roles = {getattr(tokenizer, f"{role}_token_id", None) for role in ("bos", "eos", "cls", "sep")}
    return set(tokenizer.all_special_ids) - ({tokenizer.unk_token_id} - roles)


def _align_tokens(tokenizer: Any, ids: Sequence[int], text: str) -> tuple[list[int | None], list[tuple[int, int]]]:
    """Find the words and characters of tokens by matching them with the text, if their tokenizer doesn't report them.

    Tokens and text are normalised first. A token that isn't found (an unknown character) gets all characters before the
    next token that is found.
    """
    specials = special_ids(tokenizer)
    spans = [match.span() for match in regex.finditer(r"\X", text)]
    normal = [unicodedata.normalize("NFKC", text[start:end]).casefold() for start, end in spans]
    low = "".join(normal)
    owner = [span for span, piece in zip(spans, normal, strict=True) for _ in piece] + [(len(text), len(text))]
    position, word = 0, -1
    words: list[int | None] = []
    aligned: list[tuple[int, int, bool]] = []
    for number in ids:
        if number in specials:
            words.append(None)
            aligned.append((position, position, False))
            continue
        piece = str(tokenizer.convert_ids_to_tokens(number))
        bare = piece.replace(BLANK, " ").replace("</w>", "").removeprefix("##").strip().casefold()
        lost = aligned and aligned[-1][2] and aligned[-1][0] == aligned[-1][1]  # an unknown word, which ends at a blank
        while lost and piece.startswith(BLANK) and position < len(low) and not low[position].isspace():
            position += 1
        while position < len(low) and low[position].isspace():
            position += 1
        start = low.find(bare, position) if bare else position
        start = start if 0 <= start <= position + 8 else position
        end = start + len(bare) if low.startswith(bare, start) else start
        word += start == 0 or low[start - 1].isspace() or word < 0
        words.append(word)
        aligned.append((start, end, bare != ""))
        position = end
    offsets, following = [], len(text)
    for start, end, spelled in reversed(aligned):
        first, last = owner[start][0], owner[end - 1][1] if end > start else owner[start][0]
        if spelled and last == first:
            last += len("".join(text[first:following].split()[:1]))
        elif last > first:
            following = first
        offsets.append((first, last))
    return words, offsets[::-1]


def _find_lost(tokenizer: Any, text: str, offsets: Sequence[tuple[int, int]], edges: Sequence[int]) -> tuple[str, ...]:
    """Find runs of characters without a token, except blanks and the marks that the tokenizer composes."""
    normalizer = getattr(getattr(tokenizer, "backend_tokenizer", None), "normalizer", None)
    dropped, position = [], 0
    for start, end in [*sorted(offsets), (len(text), len(text))]:
        for run in re.finditer(r"\S+", text[position:start]):
            edge = bisect_left(edges, position + run.start())
            if normalizer and edges and position + run.start() < edges[edge] >= position + run.end():
                composed = normalizer.normalize_str(text[edges[edge - 1] : edges[edge]])
                marks, remaining = (set(unicodedata.normalize("NFKD", letters)) for letters in (run[0], composed))
                if marks <= remaining:
                    continue
            dropped.append(run[0])
        position = max(position, end)
    return tuple(dropped)


def readable_token(tokenizer: Any, number: int) -> str:
    """Return the text of a token with plain blanks and line breaks, even if the vocabulary spells them otherwise.

    A token that is part of a character is spelled as bytes, such as "\\xf0\\x9f".
    """
    decoded = str(tokenizer.decode([number], clean_up_tokenization_spaces=False))
    piece = str(tokenizer.convert_ids_to_tokens(number))
    if piece and not piece.strip(BLANK):
        return " " * len(piece)  # decoders leave out the blank that begins a text
    if "\ufffd" not in decoded:
        return decoded or piece
    byte = re.fullmatch(r"<0x([0-9A-Fa-f]{2})>", piece)  # a byte in sentencepiece vocabularies
    if byte is None and not all(character in _BYTES for character in piece):
        return piece
    data = bytes.fromhex(byte[1]) if byte else bytes(_BYTES[character] for character in piece)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return spelled_token_bytes(data)


def spelled_token_bytes(piece: bytes) -> str:
    """Write the bytes of incomplete characters as escapes, such as "\\xf0"."""
    return "".join(f"\\x{byte:02x}" for byte in piece)


def shortened(text: str, limit: int = 48) -> str:
    """Quote a text for a message, cut to `limit` characters if it is longer."""
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")
