"""Turn the input of a model (texts, a chat or token ids) into tokens that fit it.

The tokenizer's template formats a chat as text. It is a Jinja program that comes with the model and runs in
transformers' sandbox. To find the messages in the text, regard runs the template again with marks instead of messages.
The text around the marks has to be the same as the text around the messages.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor

from regard.checks import is_whole
from regard.errors import RegardError, control_name, first_line
from regard.text.tokens import (
    AS_SPECIAL,
    Encoded,
    Turn,
    check_messages,
    check_text,
    check_texts,
    encode_all,
    encode_parts,
    encoded_ids,
    tokens_between,
    tokens_in_turns,
)

MARK = re.compile("\ue000([0-9]+)\ue001")


def chat_text(tokenizer: Any, messages: Sequence[dict[str, str]], name: str) -> tuple[str, tuple[Turn, ...]]:
    """Format checked messages as the text that a model reads. Return it with a turn (role, characters) per message.

    If the last message isn't the assistant's, the text ends where its answer begins. name: of the model.
    """
    try:
        tokenizer.get_chat_template()
    except (AttributeError, ValueError):
        raise RegardError(f"chat: the tokenizer of {name} has no chat template: pass a text instead") from None
    options = {"tokenize": False, "add_generation_prompt": messages[-1]["role"] != "assistant"}
    marks = [message | {"content": f"\ue000{n}\ue001"} for n, message in enumerate(messages)]
    try:
        text, marked = (tokenizer.apply_chat_template(chat, **options) for chat in ([*messages], marks))
    except Exception as error:  # a template can raise anything
        raise RegardError(f"chat: the chat template of {name} rejects it: {first_line(error)[:200]}") from error
    spans = _spans_of_messages(text, marked, [message["content"] for message in messages])
    if spans is None:
        raise RegardError(
            f"chat: the chat template of {name} changes the messages, so it is unclear which tokens "
            "belong to which message"
        )
    return text, tuple(Turn(message["role"], *span) for message, span in zip(messages, spans, strict=True))


def _spans_of_messages(text: str, marked: str, contents: Sequence[str]) -> list[tuple[int, int]] | None:
    """Return each message's characters [start, end), or None if the text around the marks differs."""
    pieces = MARK.split(marked)
    if pieces[1::2] != [str(n) for n in range(len(contents))]:
        return None
    for form in (str, str.strip, str.rstrip, str.lstrip):
        pieces[1::2] = map(form, contents)
        if "".join(pieces) == text:
            ends = [*accumulate(map(len, pieces))]
            return [*zip(ends[::2], ends[1::2], strict=False)]
    return None


Ids = Sequence[int] | Sequence[Sequence[int]] | Int[Tensor | np.ndarray, "..."]  # of one text, or of several


@dataclass(frozen=True, eq=False)
class Reader:
    """A model and its tokenizer (None if texts are passed as ids). limit: the maximum number of tokens in a text."""

    model: Any
    tokenizer: Any
    name: str
    limit: int | None

    def read(self, name: str, value: Any, ids: Any, *, windowed: bool = False) -> tuple[bool, list[Encoded]]:
        """Tokenize one text (or its ids) or several. Return whether it is a single text, and the tokens of each.

        name: "text", "prompt" or "target", for error messages. value, ids: texts or ids; the other is None. windowed:
        the text will be read in windows, so it may have any length.
        """
        if (value is None) == (ids is None):
            raise RegardError(f"pass either {name} or its ids, got {'none' if value is None else 'both'}")
        if ids is not None:
            rows = _to_lists(ids, name)
            single = not rows or is_whole(rows[0])
            return single, [self._from_ids(name, row, windowed) for row in ([rows] if single else rows)]
        texts = list(check_texts(value, name, f", or token ids as {'target_' * (name == 'target')}ids="))
        single = isinstance(value, str)
        if not texts:
            raise RegardError("trace: got no text, expected at least one")
        names = [name] if single else [f"{name} {n}" for n in range(1, len(texts) + 1)]
        if self.tokenizer is None:
            raise RegardError(f"model {self.name!r} has no tokenizer: pass ids=...")
        checked = [check_text(text, name) for text, name in zip(texts, names, strict=True)]
        results = encode_all(
            self.tokenizer, checked, target=name.startswith("target"),
            counted=lambda n, count: self._check_length(count, names[n], windowed),
        )  # fmt: skip
        return single, [self._check_ids(encoded, name) for encoded, name in zip(results, names, strict=True)]

    def read_parts(self, text: Any, second: Any, words: Any) -> tuple[bool, list[Encoded]]:
        """Tokenize pairs of texts, or lists of words. Return whether it is a single item, and the tokens of each."""
        pair, name = words is None, "second" if words is None else "words"
        if (text is None) == pair or (second is not None) != pair:
            raise RegardError(f"{name}: {'needs a text for each second text' if pair else 'words replace the text'}")
        if self.tokenizer is None:
            raise RegardError(f"{name}: model {self.name!r} has no tokenizer: pass ids=...")
        if pair:
            single = isinstance(text, str)
            texts, seconds = (list(check_texts(value, label)) for value, label in ((text, "text"), (second, name)))
            if single != isinstance(second, str) or len(texts) != len(seconds):
                counts = "one text" if single else f"a list of {len(texts)}"
                raise RegardError(f"second: expected {counts}, like the text")
            items: list[Any] = [*zip(texts, seconds, strict=True)]
        else:
            pairs = [] if isinstance(words, str) else list(check_texts(words, name))
            single = bool(pairs) and all(isinstance(value, str) for value in pairs)
            items = [pairs] if single else pairs
        if not items or any(isinstance(value, str) or not value for value in items):
            raise RegardError(f"{name}: got {words!r:.60}, expected a list of words, or a list of them for each text")
        results = []
        for parts in items:
            labels = ("text", name) if pair else [f"word {n}" for n in range(1, len(parts) + 1)]
            checked = [check_text(*value) for value in zip(parts, labels, strict=True)]
            results.append(encode_parts(self.tokenizer, checked, pair=pair))
            self._check_length(len(results[-1].tokens), name, False)
        return single, [self._check_ids(encoded, name) for encoded in results]

    def read_chat(self, messages: Any) -> Encoded:
        """Tokenize the messages of a chat, formatted with the tokenizer's template."""
        checked = check_messages(messages)
        if self.tokenizer is None:
            raise RegardError(f"model {self.name!r} has no tokenizer: pass ids=...")
        text, spans = chat_text(self.tokenizer, checked, self.name)
        (encoded,) = encode_all(
            self.tokenizer, [check_text(text, "chat")], framed=True,
            counted=lambda _, count: self._check_length(count, "chat", False),
        )  # fmt: skip
        turns = tuple(replace(turn, tokens=tokens_between(encoded, turn.start, turn.end)) for turn in spans)
        roles = ", ".join(f"{turn.role} {_number_range(turn.tokens)}" for turn in turns)
        literal = [t.text for turn in turns for n in turn.tokens if (t := encoded.tokens[n]).special]
        notes: tuple[str, ...] = (f"Token positions of the messages: {roles}.",)
        if literal:  # special tokens of the template aren't reported
            notes += (f"{AS_SPECIAL} in a message: {', '.join(dict.fromkeys(literal))}.",)
        other_notes = tuple(note for note in encoded.notes if not note.startswith(AS_SPECIAL))
        tokens = tokens_in_turns(encoded.tokens, turns)
        return self._check_ids(replace(encoded, tokens=tokens, turns=turns, notes=(*other_notes, *notes)), "chat")

    def _from_ids(self, name: str, row: Sequence[int], windowed: bool) -> Encoded:
        """Check a text's token ids and encode them."""
        size = self._count_ids()
        row = _to_lists(row, name)
        if not all(map(is_whole, row)):
            raise RegardError(f"{name} ids: got {row!r:.60}, expected whole numbers, or a list of them for each text")
        if not row:
            raise RegardError(f"{name} ids are empty: needs at least one")
        wrong = [number for number in row if not 0 <= number < size]
        if wrong:
            raise RegardError(f"{name} id {wrong[0]} is out of range: {self.name} has ids 0 to {size - 1}")
        self._check_length(len(row), name, windowed)
        return encoded_ids(row)

    def _check_ids(self, encoded: Encoded, name: str) -> Encoded:
        """Raise RegardError for ids that the model doesn't have. Return the text, or a target shifted by one."""
        if name.startswith("target"):  # the decoder reads its target shifted by one, after a start token
            start = self.model.config.decoder_start_token_id
            encoded = encoded.after(self.tokenizer, start)
        config = self.model.config
        types = getattr(config, "type_vocab_size", getattr(config, "segments", 0))  # or a Transformer's
        for kind, ids, size in (("id", encoded.ids, self._count_ids()), ("type id", encoded.segments, types)):
            if size and ids and max(ids) >= size:
                raise RegardError(
                    f"{name}: its tokenizer gives {kind} {max(ids)}, {self.name} has {kind}s 0 to {size - 1}: they do "
                    "not belong together"
                )
        return encoded

    def _count_ids(self) -> int:
        """Return the number of ids in the model's embedding table."""
        try:
            table = self.model.get_input_embeddings()
        except NotImplementedError:
            table = None
        if getattr(table, "weight", None) is None:
            raise RegardError(f"model {self.name!r} has no table of ids: it reads no text")
        return table.weight.shape[0]

    def _check_length(self, count: int, name: str, windowed: bool) -> None:
        """Raise RegardError if a text has more tokens than the model's limit, unless it is read in windows."""
        if self.limit is not None and count > self.limit and not windowed:
            pair = getattr(self.model.config, "is_encoder_decoder", False)
            window = control_name("window", f"--window {self.limit // 2} (in Python, window={self.limit // 2})")
            cut = name.startswith("text") and not pair  # other texts can't be read in windows
            hint = f"; it can be read in overlapping windows, with {window}" if cut else ""
            raise RegardError(
                f"{name} has {count} tokens with special tokens, {self.name} takes at most {self.limit}{hint}"
            )


def _to_lists(ids: Any, name: str) -> list[Any]:
    """Convert ids, or rows of them, from lists, tensors or arrays to Python lists."""
    rows = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(rows, (str, bytes, Mapping)) or hasattr(rows, "columns") or not isinstance(rows, Iterable):
        raise RegardError(f"{name} ids: got {type(ids).__name__}, expected a list of ids such as encoding['input_ids']")
    return [row.tolist() if hasattr(row, "tolist") else row for row in rows]


def _number_range(tokens: Sequence[int]) -> str:
    """Format the range of consecutive numbers for a message, such as "3 to 7"."""
    return "none" if not tokens else str(tokens[0]) if len(tokens) == 1 else f"{tokens[0]} to {tokens[-1]}"
