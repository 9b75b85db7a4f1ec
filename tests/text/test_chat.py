"""Chats: written by a template in its sandbox, each message found in the text and its tokens; what is bad is told."""

import json
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.errors import RegardError
from regard.text import chat, tokenizers
from tests.support import default_model, make_tiny, run_in_process

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}> {{ m.content }} </> {% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
ASKED = [
    {"role": "system", "content": "answer user"},
    {"role": "user", "content": "user"},
    {"role": "assistant", "content": "a river bank"},
    {"role": "user", "content": "which one"},
]


class Templated:
    """As far as a tokenizer is asked for its template."""

    def __init__(self, template: Any) -> None:
        self.template, self.special_tokens_map = template, {"bos_token": "<s>"}

    def get_chat_template(self) -> Any:
        if self.template is None:
            raise ValueError("none")
        return self.template


def test_messages_are_found_where_the_template_writes_them() -> None:
    text, turns = chat.chat_text(Templated("{{ bos_token }}" + TEMPLATE), ASKED, "m")
    assert text == (
        "<s><system> answer user </> <user> user </> <assistant> a river bank </> <user> which one </> <assistant>"
    )
    assert [(each.role, text[each.start : each.end]) for each in turns] == [tuple(each.values()) for each in ASKED]
    assert text[turns[1].start - 2] == ">"  # the message, not the role before it that reads the same
    answered, _ = chat.chat_text(Templated(TEMPLATE), ASKED[:3], "m")
    assert answered.endswith("a river bank </> ")
    blank = [ASKED[0], {"role": "user", "content": "  a bank "}]
    trimmed, turns = chat.chat_text(Templated(TEMPLATE.replace("m.content", "m.content | trim")), blank, "m")
    assert trimmed[turns[1].start : turns[1].end] == "a bank"
    whole, turns = chat.chat_text(Templated(TEMPLATE), blank, "m")
    assert whole[turns[1].start : turns[1].end] == "  a bank "


@pytest.mark.parametrize(
    ("template", "says"),
    [
        (None, "the tokenizer of m has no chat template: give a text instead"),
        ("{{ raise_exception('roles must take turns') }}", "the chat template of m refuses it: roles must take turns"),
        ("{% for", "the chat template of m refuses it: "),
        ("{{ messages.__class__.__mro__ }}", "refuses it: access to attribute '__class__' of 'list' object is unsafe"),
        ("{{ 'ab' * 600000 }}", "refuses it: it writes more than 1,000,000 characters"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "writes messages in another way than they are"),
        ("{{ messages[0].content }}", "writes messages in another way than they are given"),
        ("{% for a in range(99999) %}{{ '%9000s' % a }}{% endfor %}", "refuses it: it writes more than 1,000,000 char"),
        ("{% for a in range(9999) %}" * 4 + "{% endfor %}" * 4, "the chat template of m refuses it: it does not end"),
        ("x" * 1_000_001, "the chat template of m is no text of up to 1,000,000 characters"),
        (5, "the chat template of m is no text of up to 1,000,000 characters"),
    ],
)
def test_a_template_that_does_not_write_it(template: Any, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat, "SECONDS", 0.3)
    with pytest.raises(RegardError, match="chat: ") as told:
        chat.chat_text(Templated(template), ASKED, "m")
    assert says in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "given dict, needs a list of messages"),
        ([], "given list, needs a list of messages, at least one"),
        (["a"], 'message 1 needs a "role" and a "content"'),
        ([{"role": "user"}], 'message 1 needs a "role" and a "content"'),
        ([{"role": "me", "content": "a"}], "message 1 has the role 'me', known are system, developer, user, assistant"),
        ([{"role": ["user"], "content": "a"}], "message 1 has the role"),
        ([{"role": "user", "content": ["a"]}], "the content of message 1 is a list, needs a text"),
        (
            [{"role": "user", "content": "a", "tool_calls": []}],
            'message 1 needs a "role" and a "content", and no other',
        ),
        ([{"role": "user", "content": "a" * 1_000_001}], "its messages have more than 1,000,000 characters"),
    ],
)
def test_what_is_no_chat(given: Any, says: str) -> None:
    with pytest.raises(RegardError) as told:
        chat.check_messages(given)
    assert str(told.value).startswith(f"chat: {says}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model whose tokenizer has a template."""
    minilm, made = default_model(), tmp_path_factory.mktemp("chat") / "m"
    make_tiny(made, minilm, "llama", max_position_embeddings=64)
    (made / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return made


def test_a_trace_knows_the_turns(folder: Path, tmp_path: Path) -> None:
    model = regard.load(folder, device="cpu")
    trace = model.trace(messages=ASKED)
    assert [each.role for each in trace.turns] == ["system", "user", "assistant", "user"]
    for turn, message in zip(trace.turns, ASKED, strict=True):
        assert [trace.tokens[n].text for n in turn.tokens] == message["content"].split()
    assert trace.tokens[0].text == "<"  # the template writes what frames a text, the tokenizer adds nothing to it
    first, last = trace.turns[0].tokens, trace.turns[3].tokens
    assert (
        f"Token positions of the messages: system {first[0]} to {first[-1]}, user {trace.turns[1].tokens[0]}, "
        in " ".join(trace.status.notes)
    )
    weights = trace.attention[1][:, list(last), :][..., list(first)]  # what the question gives the system's message
    assert weights.shape == (3, 2, 2)
    names = "system 1", "user 1", "assistant 1", "user 2"
    told = {n: name for turn, name in zip(trace.turns, names, strict=True) for n in turn.tokens}
    assert [token.turn for token in trace.tokens] == [told.get(n, "") for n in range(len(trace.tokens))]
    trace.save(tmp_path / "a.safetensors")
    again = regard.open(tmp_path / "a.safetensors")
    assert (again.turns, again.tokens) == (trace.turns, trace.tokens)
    marked = model.trace(messages=[{"role": "user", "content": "a [SEP] bank"}])
    assert "Read as a special token in a message: [SEP]." in marked.status.notes
    assert model.trace("a river bank").turns == ()
    for others in ({"text": "a"}, {"ids": [5]}, {"window": 9}):
        with pytest.raises(RegardError, match="chat: messages are given alone, and whole"):
            model.trace(messages=ASKED, **others)
    with pytest.raises(RegardError, match="chat has 8.. tokens, special ones included: m takes 64 at most$"):
        model.trace(messages=[{"role": "user", "content": "bank " * 800}])
    with pytest.raises(RegardError, match="the tokenizer of all-MiniLM-L6-v2 has no chat template: give a text"):
        default_model().trace(messages=ASKED)


def test_an_empty_message_has_no_token_of_those_around_it(folder: Path) -> None:
    own = tokenizers.byte_pairs("a bank\n\n" * 9, size=300)
    own.chat_template = "{% for m in messages %}{{ m.content }}\n{% endfor %}"
    asked = [{"role": "user", "content": each} for each in ("bank", "")]
    trace = regard.load(folder, tokenizer=own, device="cpu").trace(messages=asked)
    assert trace.text[trace.tokens[-1].start :] == "\n\n"  # the empty message is inside of it
    assert trace.turns[1].tokens == ()


def test_a_chat_is_seen(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "chat.json"
    file.write_text(json.dumps(ASKED), encoding="utf-8")
    done = run_in_process(tmp_path, ["see", "--chat", "chat.json", "--model", str(folder), "--json", "-"])
    assert done.returncode == 0, done.stderr
    assert "positions of the messages: system " in done.stdout
    for content, says in (
        ("[", "regard: error: --chat 'chat.json': "),
        ("{}", "regard: error: --chat 'chat.json': given dict, needs a list of messages"),
        ('[{"role": "me", "content": "a"}]', "--chat 'chat.json': message 1 has the role 'me', known are system"),
    ):
        file.write_text(content, encoding="utf-8")
        told = run_in_process(tmp_path, ["see", "--chat", "chat.json", "--model", str(folder)])
        assert (told.returncode, told.stdout) == (2, "")
        assert says in told.stderr
    for more in (["a bank"], ["--window", "9"], ["--open", "a.safetensors"]):
        told = run_in_process(tmp_path, ["see", "--chat", "chat.json", "--model", str(folder), *more])
        assert told.returncode == 2
        assert "--chat" in told.stderr
    missing = run_in_process(tmp_path, ["see", "--chat", "none.json"])
    assert (missing.returncode, "--chat 'none.json'" in missing.stderr) == (2, True)
