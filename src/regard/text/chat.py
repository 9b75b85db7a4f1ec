"""Write a chat as the text that a model reads, by its tokenizer's template, and find the messages in that text.

A template is a program that came with a model (Jinja). It runs in transformers' own sandbox, in a process of its own
that ends after some seconds and has so much memory and no more; what it writes may be so long and no longer.

Where each message stands is not guessed: the template is run once more with marks in the place of the messages, and
what it wrote around the marks has to be what it wrote around the messages.
"""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from regard.errors import RegardError
from regard.text.tokens import Turn

ROLES = ("system", "developer", "user", "assistant", "tool")
SECONDS, MEMORY = 20, 4 << 30  # that a template may take, the second in bytes
LONGEST = 1_000_000  # characters of a template, of all messages, and of what is written
MARK = re.compile("\ue000([0-9]+)\ue001")
CHILD = """
import json, sys
from transformers.utils.chat_template_utils import render_jinja_template
asked = json.load(sys.stdin)
try:
    import resource
    resource.setrlimit(resource.RLIMIT_AS, (asked["memory"], asked["memory"]))
except (ImportError, ValueError, OSError):
    pass
def written(messages):
    found = render_jinja_template(conversations=[messages], chat_template=asked["template"], **asked["more"])
    text = str((found[0] if isinstance(found, tuple) else found)[0])
    if len(text) > asked["longest"]:
        raise ValueError(f"it writes more than {asked['longest']:,} characters")
    return text
answer = {}
for name in ("messages", "marked"):
    try:
        answer[name] = written(asked[name])
    except MemoryError:
        answer["error"] = answer.get("error") or "it asks for too much memory"
    except Exception as error:
        answer["error"] = answer.get("error") or f"{error or type(error).__name__}"
json.dump(answer, sys.stdout)
"""


def check_messages(given: Any) -> list[dict[str, str]]:
    """Check that something is a chat: a list of {"role": …, "content": …}.

    Raises:
        RegardError: it is none, is too long, or a message has another role, or fields that are not read here.
    """
    if not isinstance(given, (list, tuple)):
        raise RegardError(f"chat: given {type(given).__name__}, needs a list of messages, at least one")
    if not given:
        raise RegardError("chat: given no message, needs at least one")
    for number, each in enumerate(given, 1):
        if not isinstance(each, dict) or not {"role", "content"} <= each.keys():
            raise RegardError(f'chat: message {number} needs a "role" and a "content"')
        more = [key for key in each if key not in ("role", "content")]
        if more:
            raise RegardError(f'chat: message {number} has {str(more[0])[:40]!r}, read are "role" and "content" alone')
        if each["role"] not in ROLES:
            raise RegardError(
                f"chat: message {number} has the role {str(each['role'])[:40]!r}, known are {', '.join(ROLES)}"
            )
        if not isinstance(each["content"], str):
            kind = "null" if each["content"] is None else f"a {type(each['content']).__name__}"
            raise RegardError(f"chat: the content of message {number} is {kind}, needs a text")
    if sum(len(each["content"]) for each in given) > LONGEST:
        raise RegardError(f"chat: its messages have more than {LONGEST:,} characters")
    return [{"role": each["role"], "content": each["content"]} for each in given]


def chat_text(tokenizer: Any, messages: Sequence[dict[str, str]], name: str) -> tuple[str, tuple[Turn, ...]]:
    """Write checked messages as the text that a model reads, and say which characters each message is.

    Where the last message is not the assistant's, the text ends where its answer begins. name: the model's.

    Raises:
        RegardError: the tokenizer has no template; it raises, takes too long or writes too much; or it writes messages
            in another way than they were given.
    """
    try:
        template = tokenizer.get_chat_template()
    except (AttributeError, ValueError):
        raise RegardError(f"chat: the tokenizer of {name} has no chat template: give a text instead") from None
    if len(template) > LONGEST:
        raise RegardError(f"chat: the chat template of {name} has more than {LONGEST:,} characters")
    special = {key: str(value) for key, value in tokenizer.special_tokens_map.items() if isinstance(value, str)}
    marked = [each | {"content": f"\ue000{n}\ue001"} for n, each in enumerate(messages)]
    asked = {
        "template": template, "messages": list(messages), "marked": marked, "memory": MEMORY, "longest": LONGEST,
        "more": special | {"add_generation_prompt": messages[-1]["role"] != "assistant"},
    }  # fmt: skip
    answer = _in_process_of_its_own(asked, name)
    if "messages" not in answer:
        reason = " ".join(str(answer.get("error", "it ended")).split())[:200]
        raise RegardError(f"chat: the chat template of {name} refuses it: {reason}")
    text = answer["messages"]
    spans = _spans_of_messages(text, answer.get("marked", ""), [each["content"] for each in messages])
    if spans is None:
        raise RegardError(
            f"chat: the chat template of {name} writes messages in another way than they are given: which tokens "
            "are whose would not be known"
        )
    return text, tuple(Turn(each["role"], *span) for each, span in zip(messages, spans, strict=True))


def _in_process_of_its_own(asked: dict[str, Any], name: str) -> dict[str, Any]:
    """What the template writes, or why it does not."""
    command = [sys.executable, "-I", "-c", CHILD]
    try:
        done = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise RegardError(f"chat: the chat template of {name} does not end within {SECONDS} seconds") from None
    try:
        answer: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise RegardError(f"chat: the chat template of {name} ends its process (exit code {done.returncode})") from None
    return answer


def _spans_of_messages(text: str, marked: str, contents: Sequence[str]) -> list[tuple[int, int]] | None:
    """The characters of each message: in the frame that was written around the marks; None where that is another."""
    pieces = MARK.split(marked)
    if pieces[1::2] != [str(n) for n in range(len(contents))]:
        return None
    for form in (str, str.strip, str.rstrip, str.lstrip):
        at, spans, rebuilt = 0, [], []
        for frame, content in zip(pieces[::2], [*map(form, contents), ""], strict=True):
            at += len(frame)
            spans.append((at, at + len(content)))
            rebuilt += [frame, content]
            at += len(content)
        if "".join(rebuilt) == text:
            return spans[:-1]
    return None
