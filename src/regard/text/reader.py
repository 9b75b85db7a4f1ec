"""Turn what a model is to read, texts, a chat or token ids, into tokens that fit it.

A chat is written as text by its tokenizer's template: a program that came with a model (Jinja), in transformers'
sandbox. Where each message stands is not guessed: the template is run once more with marks in the place of the
messages, and what it wrote around the marks has to be what it wrote around the messages.
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
    """Write checked messages as the text that a model reads, and say which characters each message is.

    Where the last message isn't the assistant's, the text ends where its answer begins. name: the model's.
    """
    try:
        tokenizer.get_chat_template()
    except (AttributeError, ValueError):
        raise RegardError(f"chat: the tokenizer of {name} has no chat template: pass a text instead") from None
    how = {"tokenize": False, "add_generation_prompt": messages[-1]["role"] != "assistant"}
    marks = [message | {"content": f"\ue000{n}\ue001"} for n, message in enumerate(messages)]
    try:
        text, marked = (tokenizer.apply_chat_template(chat, **how) for chat in ([*messages], marks))
    except Exception as error:  # a template raises what it likes
        raise RegardError(f"chat: the chat template of {name} rejects it: {first_line(error)[:200]}") from error
    spans = _spans_of_messages(text, marked, [message["content"] for message in messages])
    if spans is None:
        raise RegardError(
            f"chat: the chat template of {name} changes the messages, so it is unclear which tokens "
            "belong to which message"
        )
    return text, tuple(Turn(message["role"], *span) for message, span in zip(messages, spans, strict=True))


def _spans_of_messages(text: str, marked: str, contents: Sequence[str]) -> list[tuple[int, int]] | None:
    """The characters of each message: in the frame that was written around the marks; None if that is another."""
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
    """A tokenizer (None: only ids) and the model it belongs to. limit: the maximum number of tokens in a text."""

    model: Any
    tokenizer: Any
    name: str
    limit: int | None

    def read(self, name: str, value: Any, ids: Any, *, windowed: bool = False) -> tuple[bool, list[Encoded]]:
        """Read one text (or its ids) or several: whether it was one, and the tokens of each.

        name: "text", "prompt" or "target", for error messages. value, ids: one of them, the other None.
        windowed: it will be read in windows, so that it may have any length.
        """
        if (value is None) == (ids is None):
            raise RegardError(f"pass either {name} or its ids, got {'none' if value is None else 'both'}")
        if ids is not None:
            rows = _listed(ids, name)
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
        """Read texts with a second text each, or texts that are given as their words: whether it was one, and each."""
        pair, name = words is None, "second" if words is None else "words"
        if (text is None) == pair or (second is not None) != pair:
            raise RegardError(f"{name}: {'needs a text for each second text' if pair else 'words replace the text'}")
        if self.tokenizer is None:
            raise RegardError(f"{name}: model {self.name!r} has no tokenizer: pass ids=...")
        if pair:
            single = isinstance(text, str)
            texts, seconds = (list(check_texts(value, what)) for value, what in ((text, "text"), (second, name)))
            if single != isinstance(second, str) or len(texts) != len(seconds):
                counts = "one text" if single else f"a list of {len(texts)}"
                raise RegardError(f"second: expected {counts}, like the text")
            several: list[Any] = [*zip(texts, seconds, strict=True)]
        else:
            pairs = [] if isinstance(words, str) else list(check_texts(words, name))
            single = bool(pairs) and all(isinstance(value, str) for value in pairs)
            several = [pairs] if single else pairs
        if not several or any(isinstance(value, str) or not value for value in several):
            raise RegardError(f"{name}: got {words!r:.60}, expected a list of words, or a list of them for each text")
        results = []
        for parts in several:
            called = ("text", name) if pair else [f"word {n}" for n in range(1, len(parts) + 1)]
            checked = [check_text(*value) for value in zip(parts, called, strict=True)]
            results.append(encode_parts(self.tokenizer, checked, pair=pair))
            self._check_length(len(results[-1].tokens), name, False)
        return single, [self._check_ids(encoded, name) for encoded in results]

    def read_chat(self, messages: Any) -> Encoded:
        """Read the messages of a chat, by the tokenizer's template."""
        checked = check_messages(messages)
        if self.tokenizer is None:
            raise RegardError(f"model {self.name!r} has no tokenizer: pass ids=...")
        text, spans = chat_text(self.tokenizer, checked, self.name)
        (encoded,) = encode_all(
            self.tokenizer, [check_text(text, "chat")], framed=True,
            counted=lambda _, count: self._check_length(count, "chat", False),
        )  # fmt: skip
        turns = tuple(replace(turn, tokens=tokens_between(encoded, turn.start, turn.end)) for turn in spans)
        roles = ", ".join(f"{turn.role} {_run(turn.tokens)}" for turn in turns)
        literal = [t.text for turn in turns for n in turn.tokens if (t := encoded.tokens[n]).special]
        notes: tuple[str, ...] = (f"Token positions of the messages: {roles}.",)
        if literal:  # those of the template are meant
            notes += (f"{AS_SPECIAL} in a message: {', '.join(dict.fromkeys(literal))}.",)
        other_notes = tuple(note for note in encoded.notes if not note.startswith(AS_SPECIAL))
        tokens = tokens_in_turns(encoded.tokens, turns)
        return self._check_ids(replace(encoded, tokens=tokens, turns=turns, notes=(*other_notes, *notes)), "chat")

    def _from_ids(self, name: str, row: Sequence[int], windowed: bool) -> Encoded:
        size = self._id_count()
        row = _listed(row, name)
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
        if name.startswith("target"):  # the decoder reads its target one token late: it begins with the start token
            start = self.model.config.decoder_start_token_id
            encoded = encoded.after(self.tokenizer, start)
        config = self.model.config
        types = getattr(config, "type_vocab_size", getattr(config, "segments", 0))  # of a model of ours
        for kind, ids, size in (("id", encoded.ids, self._id_count()), ("type id", encoded.segments, types)):
            if size and ids and max(ids) >= size:
                raise RegardError(
                    f"{name}: its tokenizer gives {kind} {max(ids)}, {self.name} has {kind}s 0 to {size - 1}: they do "
                    "not belong together"
                )
        return encoded

    def _id_count(self) -> int:
        """Count the ids that the model has."""
        try:
            table = self.model.get_input_embeddings()
        except NotImplementedError:
            table = None
        if getattr(table, "weight", None) is None:
            raise RegardError(f"model {self.name!r} has no table of ids: it reads no text")
        return table.weight.shape[0]

    def _check_length(self, count: int, name: str, windowed: bool) -> None:
        if self.limit is not None and count > self.limit and not windowed:
            pair = getattr(self.model.config, "is_encoder_decoder", False)
            window = control_name("window", f"--window {self.limit // 2} (in Python, window={self.limit // 2})")
            cut = name.startswith("text") and not pair  # nothing else is read in windows
            hint = f"; it can be read in overlapping windows, with {window}" if cut else ""
            raise RegardError(
                f"{name} has {count} tokens with special tokens, {self.name} takes at most {self.limit}{hint}"
            )


def _listed(ids: Any, name: str) -> list[Any]:
    """List ids, or rows of them, as Python has them: of lists, tensors and arrays, and lists of such numbers."""
    rows = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(rows, (str, bytes, Mapping)) or hasattr(rows, "columns") or not isinstance(rows, Iterable):
        raise RegardError(f"{name} ids: got {type(ids).__name__}, expected a list of ids such as encoding['input_ids']")
    return [row.tolist() if hasattr(row, "tolist") else row for row in rows]


def _run(tokens: Sequence[int]) -> str:
    """Consecutive numbers as a user writes them."""
    return "none" if not tokens else str(tokens[0]) if len(tokens) == 1 else f"{tokens[0]} to {tokens[-1]}"
