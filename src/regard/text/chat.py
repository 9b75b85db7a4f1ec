"""Write a chat as the text that a model reads, by its tokenizer's template, and find the messages in that text.

A template is a program that came with a model (Jinja). It runs in transformers' own sandbox, for some seconds at most,
and may write so many characters.

Where each message stands is not guessed: the template is run once more with marks in the place of the messages, and
what it wrote around the marks has to be what it wrote around the messages.
"""

import re
import sys
import time
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from regard.errors import RegardError, first_line
from regard.text.tokens import Turn

ROLES = ("system", "developer", "user", "assistant", "tool")
SECONDS = 5.0  # that a template may take
LONGEST = 1_000_000  # characters of a template, of all messages, and of what is written
MARK = re.compile("\ue000([0-9]+)\ue001")


def check_messages(messages: Any) -> list[dict[str, str]]:
    """Check that something is a chat: a list of {"role": …, "content": …}."""
    if not isinstance(messages, (list, tuple)) or not messages:
        raise RegardError(f"chat: given {type(messages).__name__}, needs a list of messages, at least one")
    for number, message in enumerate(messages, 1):
        if not isinstance(message, dict) or message.keys() != {"role", "content"}:
            raise RegardError(f'chat: message {number} needs a "role" and a "content", and no other entry is read')
        if message["role"] not in ROLES:
            raise RegardError(
                f"chat: message {number} has the role {str(message['role'])[:40]!r}, known are {', '.join(ROLES)}"
            )
        if not isinstance(message["content"], str):
            kind = type(message["content"]).__name__
            raise RegardError(f"chat: the content of message {number} is a {kind}, needs a text")
    if sum(len(message["content"]) for message in messages) > LONGEST:
        raise RegardError(f"chat: its messages have more than {LONGEST:,} characters")
    return [dict(message) for message in messages]


def chat_text(tokenizer: Any, messages: Sequence[dict[str, str]], name: str) -> tuple[str, tuple[Turn, ...]]:
    """Write checked messages as the text that a model reads, and say which characters each message is.

    Where the last message is not the assistant's, the text ends where its answer begins. name: the model's.
    """
    try:
        template = tokenizer.get_chat_template()
    except (AttributeError, ValueError):
        raise RegardError(f"chat: the tokenizer of {name} has no chat template: give a text instead") from None
    if not isinstance(template, str) or len(template) > LONGEST:
        raise RegardError(f"chat: the chat template of {name} is no text of up to {LONGEST:,} characters")
    special = {key: str(value) for key, value in tokenizer.special_tokens_map.items() if isinstance(value, str)}
    asks = messages[-1]["role"] != "assistant"
    more = special | {"add_generation_prompt": asks, "tools": None, "documents": None}
    try:
        text = _written(template, messages, more)
        marks = [message | {"content": f"\ue000{n}\ue001"} for n, message in enumerate(messages)]
        marked = _written(template, marks, more)
    except Exception as error:  # a template raises what it likes
        raise RegardError(f"chat: the chat template of {name} refuses it: {first_line(error)[:200]}") from error
    spans = _spans_of_messages(text, marked, [message["content"] for message in messages])
    if spans is None:
        raise RegardError(
            f"chat: the chat template of {name} writes messages in another way than they are given: which tokens "
            "are whose would not be known"
        )
    return text, tuple(Turn(message["role"], *span) for message, span in zip(messages, spans, strict=True))


def _written(template: str, messages: Sequence[dict[str, str]], more: dict[str, Any]) -> str:
    """What the template writes. Raises whatever it raises, or for its time or its length."""
    from transformers.utils.chat_template_utils import _compile_jinja_template

    text, until, tracer = "", time.monotonic() + SECONDS, sys.gettrace()

    def stop(*_: Any) -> Any:
        """End a loop that writes nothing: Python asks this at every line of the template."""
        if time.monotonic() > until:
            raise TimeoutError(f"it does not end within {SECONDS:.0f} seconds")
        return stop

    compiled = _compile_jinja_template(template)
    sys.settrace(stop)
    try:
        for piece in compiled.generate(messages=messages, **more):
            text += piece
            if len(text) > LONGEST:
                raise ValueError(f"it writes more than {LONGEST:,} characters")
    finally:
        sys.settrace(tracer)
    return text


def _spans_of_messages(text: str, marked: str, contents: Sequence[str]) -> list[tuple[int, int]] | None:
    """The characters of each message: in the frame that was written around the marks; None where that is another."""
    pieces = MARK.split(marked)
    if pieces[1::2] != [str(n) for n in range(len(contents))]:
        return None
    for form in (str, str.strip, str.rstrip, str.lstrip):
        pieces[1::2] = map(form, contents)
        if "".join(pieces) == text:
            ends = [*accumulate(map(len, pieces))]
            return [*zip(ends[::2], ends[1::2], strict=False)]
    return None
