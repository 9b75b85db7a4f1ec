"""Texts, token ids and chats as a model reads them: written by a template, each message found in its tokens."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
import torch
from transformers import BatchEncoding

import regard
from regard.errors import RegardError
from regard.models.inputs import model_inputs_of_trace
from regard.text import reader, tokenizers, tokens
from tests.support import default_model, make_tiny, run_in_process
from tests.support.own_models import opened, pair

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


def templated(template: str | None) -> Any:
    """A tokenizer with a chat template."""
    tokenizer = tokenizers.words("a", frame="both")
    tokenizer.chat_template = template
    return tokenizer


def test_messages_are_found_where_the_template_writes_them() -> None:
    text, turns = reader.chat_text(templated("{{ bos_token }}" + TEMPLATE), ASKED, "m")
    assert text == (
        "[BOS]<system> answer user </> <user> user </> <assistant> a river bank </> <user> which one </> <assistant>"
    )
    assert [(each.role, text[each.start : each.end]) for each in turns] == [tuple(each.values()) for each in ASKED]
    assert text[turns[1].start - 2] == ">"  # the message, not the role before it that reads the same
    answered, _ = reader.chat_text(templated(TEMPLATE), ASKED[:3], "m")
    assert answered.endswith("a river bank </> ")
    blank = [ASKED[0], {"role": "user", "content": "  a bank "}]
    trimmed, turns = reader.chat_text(templated(TEMPLATE.replace("m.content", "m.content | trim")), blank, "m")
    assert trimmed[turns[1].start : turns[1].end] == "a bank"
    whole, turns = reader.chat_text(templated(TEMPLATE), blank, "m")
    assert whole[turns[1].start : turns[1].end] == "  a bank "


@pytest.mark.parametrize(
    ("template", "says"),
    [
        (None, "the tokenizer of m has no chat template: pass a text instead"),
        ("{{ raise_exception('roles must take turns') }}", "the chat template of m rejects it: roles must take turns"),
        ("{% for", "the chat template of m rejects it: "),
        ("{{ messages.__class__.__mro__ }}", "rejects it: access to attribute '__class__' of 'list' object is unsafe"),
        ("{% for m in messages %}{{ m.content | upper }}{% endfor %}", "changes the messages, so it is unclear"),
        ("{{ messages[0].content }}", "changes the messages, so it is unclear which tokens"),
    ],
)
def test_a_template_that_does_not_write_it(template: str | None, says: str) -> None:
    with pytest.raises(RegardError, match="chat: ") as told:
        reader.chat_text(templated(template), ASKED, "m")
    assert says in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "got dict, expected a list of messages"),
        ([], "got list, expected a list of messages, at least one"),
        (["a"], 'message 1 needs a "role" and a "content"'),
        ([{"role": "user"}], 'message 1 needs a "role" and a "content"'),
        ([{"role": "me", "content": "a"}], "message 1 has the role 'me', expected one of system, developer"),
        ([{"role": ["user"], "content": "a"}], "message 1 has the role"),
        ([{"role": "user", "content": ["a"]}], "the content of message 1 is a list, expected a text"),
        (
            [{"role": "user", "content": "a", "tool_calls": []}],
            'message 1 needs a "role" and a "content", and no other',
        ),
    ],
)
def test_what_is_no_chat(given: Any, says: str) -> None:
    with pytest.raises(RegardError) as told:
        tokens.check_messages(given)
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
        with pytest.raises(RegardError, match="chat: pass only messages"):
            model.trace(messages=ASKED, **others)
    with pytest.raises(RegardError, match="chat has 8.. tokens with special tokens, m takes at most 64$"):
        model.trace(messages=[{"role": "user", "content": "bank " * 800}])
    with pytest.raises(RegardError, match="the tokenizer of all-MiniLM-L6-v2 has no chat template: pass a text"):
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
        ("{}", "regard: error: --chat 'chat.json': got dict, expected a list of messages"),
        ('[{"role": "me", "content": "a"}]', "--chat 'chat.json': message 1 has the role 'me', expected one of system"),
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


TEXT = "A man is fishing on a river bank."


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_one_or_several() -> None:
    reader = opened("gpt")._reader
    single, (one,) = reader.read("text", TEXT, None)
    several, (again,) = reader.read("text", [TEXT], None)
    assert (single, several) == (True, False)
    assert one.ids == again.ids
    array = np.array(one.ids)
    for ids in (one.ids, torch.tensor(one.ids), array, array.astype(np.uint16), list(array), list(torch.tensor(array)),
                pandas.Series(array), (n for n in one.ids)):  # fmt: skip
        single, (by_ids,) = reader.read("text", None, ids)
        assert single
        assert by_ids.ids == one.ids
    for rows in ([[1, 2], [3]], [np.array([1, 2]), torch.tensor([3])], [list(torch.tensor([1, 2])), range(3, 4)]):
        single, both = reader.read("text", None, rows)
        assert (single, [each.ids for each in both]) == (False, [[1, 2], [3]])
    for texts in (np.array(["A man", "A bank"]), pandas.Series(["A man", "A bank"]), {"A man": 1, "A bank": 2}.keys()):
        assert [each.text for each in reader.read("text", texts, None)[1]] == ["A man", "A bank"]


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("given", "ids", "says"),
    [
        (None, None, "pass either text or its ids, got none"),
        ("a", [1], "pass either text or its ids, got both"),
        ([], None, "got no text, expected at least one"),
        (3, None, "got int, expected a string or several of them"),
        (b"a", None, "got bytes, expected a string"),
        (torch.tensor(3), None, "got Tensor, expected a string"),
        ({"input_ids": [1]}, None, "text: got dict, expected a string or several of them, or token ids as ids="),
        (BatchEncoding({"input_ids": [1]}), None, "text: got BatchEncoding, .* as ids="),
        (pandas.DataFrame({"text": ["a"]}), None, "text: got DataFrame, .* as ids="),
        (None, BatchEncoding({"input_ids": [1]}), r"text ids: got BatchEncoding, expected .* encoding\['input_ids'\]"),
        (None, pandas.DataFrame({"ids": [1]}), "text ids: got DataFrame, expected a list of ids"),
        (None, 5, "text ids: got int, expected a list of ids"),
        (None, torch.tensor(5), "text ids: got Tensor, expected a list of ids"),
        (None, "12", "text ids: got str, expected a list of ids"),
        (None, [1.0, 2.0], "text ids: got float, expected a list of ids"),
        (None, [[1.5, 2.0]], r"text ids: got \[1.5, 2.0\], expected whole numbers"),
        (None, np.array([[1.0, 2.0]]), "expected whole numbers"),
        (None, [1, [2]], "expected whole numbers"),
        (None, [True, False], "text ids: got bool, expected"),
        (None, torch.ones(2, 2, 2, dtype=torch.int64), "expected whole numbers"),
        ("", None, "text is empty"),
        (["A bank", " "], None, "text 2 is blank"),
        (None, [], "text ids are empty: needs at least one"),
        (None, [[]], "text ids are empty: needs at least one"),
        (None, [1, -1], "text id -1 is out of range: transformer has ids 0 to"),
        (None, [10**6], "text id 1000000 is out of range"),
        ("bank " * 32, None, "32 tokens with special tokens, .* at most 31; .* --window 15 .in Python, window=15."),
    ],
)
def test_what_is_refused(given: Any, ids: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        opened("gpt")._reader.read("text", given, ids)


def test_a_text_that_does_not_fit_is_refused_before_its_tokens_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two million characters took half a minute to be refused."""
    built: list[int] = []
    monkeypatch.setattr("regard.text.tokens._build_encoded", lambda *given: built.append(1))
    with pytest.raises(RegardError, match="text has 32 tokens"):
        opened("gpt")._reader.read("text", "bank " * 32, None)
    assert not built


def test_any_length_in_windows() -> None:
    _, (encoded,) = opened("gpt")._reader.read("text", "bank " * 32, None, windowed=True)
    assert len(encoded.tokens) == 32


def test_a_target_begins_with_the_start_token() -> None:
    model = pair()
    start = model.model.config.start
    _, (target,) = model._reader.read("target", "Une banque", None)
    _, (text,) = model._reader.read("text", "Une banque", None)
    assert target.ids == [start, *text.ids[:-1]]


def test_a_tokenizer_of_another_model_is_refused() -> None:
    small, large = opened("gpt")._reader, pair()
    wrong = type(small)(small.model, large.tokenizer, "tiny", 31)
    with pytest.raises(RegardError, match="they do not belong together"):
        wrong.read("text", TEXT, None)
    with pytest.raises(RegardError, match="has no tokenizer: pass ids="):
        type(small)(small.model, None, "tiny", 31).read("text", TEXT, None)


def test_two_texts_are_read_by_the_tokenizers_template(minilm: Any) -> None:
    first, second = "A man eats at the bank.", "The bank is closed — naïve!"
    for reads in (minilm, opened("gpt")):
        tokenizer = reads.tokenizer
        single, (pair_of_texts,) = reads._reader.read_parts(first, second, None)
        expected = tokenizer(first, second)
        assert single
        assert pair_of_texts.ids == expected["input_ids"]
        assert list(pair_of_texts.segments or ()) == list(expected.get("token_type_ids", ()))
        assert pair_of_texts.text == f"{first}\n{second}"
        for turn, text in zip(pair_of_texts.turns, (first, second), strict=True):
            assert pair_of_texts.text[turn.start : turn.end] == text
            own = [pair_of_texts.tokens[n] for n in turn.tokens]
            spans = [(token.start - turn.start, token.end - turn.start) for token in own]
            assert spans == [(s, e) for s, e in tokenizer(text, return_offsets_mapping=True)["offset_mapping"] if e > s]
    assert {token.turn for token in minilm.trace(first, second=second).tokens} == {"", "text 1", "text 2"}
    trace = minilm.trace(first, second=second)
    assert [each.start for each in trace.word("bank")] == [18, 28]
    assert trace.word("closed")[0].start - trace.turns[1].start == second.index("closed")
    assert [each.text for each in minilm.trace([first, "b"], second=[second, "c"])] == [trace.text, "b\nc"]
    own = minilm.model(**minilm.tokenizer(first, second, return_tensors="pt")).last_hidden_state[0]
    torch.testing.assert_close(trace.last_hidden_state, own, atol=1e-5, rtol=0)
    read, _ = model_inputs_of_trace(minilm._reader, trace, "test")
    assert list(read.segments or ()) == minilm.tokenizer(first, second)["token_type_ids"]  # to be run again


def test_words_are_found_as_they_were_given(minilm: Any) -> None:
    words = ["New-York", "isn't", "Bob", "'s", "."]
    trace = minilm.trace(words=words)
    assert [t.id for t in trace.tokens] == minilm.tokenizer(words, is_split_into_words=True)["input_ids"]
    assert trace.text == "New-York isn't Bob 's ."
    for n, word in enumerate(words):
        (found,) = trace.word(word)
        assert {trace.tokens[k].word for k in found.tokens} == {n}
    assert [each.text for each in minilm.trace(words=[["a", "bank"], words])] == ["a bank", trace.text]


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"second": "b"}, "second: needs a text for each second text"),
        ({"text": "a", "second": ["b"]}, "second: expected one text, like the text"),
        ({"text": ["a", "b"], "second": ["b"]}, "second: expected a list of 2, like the text"),
        ({"text": "a", "second": " "}, "second is blank"),
        ({"text": "a", "words": ["b"]}, "words: words replace the text"),
        ({"words": "abc"}, "words: got 'abc', expected a list of words"),
        ({"words": []}, "expected a list of words"),
        ({"words": ["a", ""]}, "word 2 is empty"),
        ({"words": ["a"] * 600}, "words has 602 tokens"),
        ({"text": "a", "second": "b", "window": 20}, "second and words can't be combined with ids, inputs or window"),
    ],
)
def test_parts_that_are_refused(minilm: Any, given: Any, says: str) -> None:
    with pytest.raises(RegardError, match=says):
        minilm.trace(**given)
