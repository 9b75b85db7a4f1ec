"""What was seen as JSON, as rows and as a page says what the summary does; looking at texts looks at their traces."""

import json
import math
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest

import regard
from regard.display.panels import made
from regard.explain.texts.summary import summarise
from regard.questions.see.answer import Seen, seen
from regard.text.tokens import Turn, tokens_in_turns


@pytest.fixture(scope="module")
def schema():
    return json.loads(files("regard.questions.see").joinpath("see.schema.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def chat(bank):
    """The first eight tokens are the user's but the very first, those from the tenth on the assistant's."""
    turns = Turn("user", 0, 26, tuple(range(1, 8))), Turn("assistant", 35, 49, (9, 10, 11))
    return replace(bank[0], tokens=tokens_in_turns(bank[0].tokens, turns), turns=turns)


@pytest.fixture(scope="module")
def found(bank) -> Seen:
    return seen(bank, "bank")


def test_every_file_fits_the_schema(bank, minilm, schema, tmp_path: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    for each in (
        seen(bank, "bank", references=[minilm.trace("money")], layer=1),
        seen(bank),
        seen(bank[:1], "bank"),
        seen([minilm.trace("a man on a river bank saw a bank of clouds", window=8)], "bank"),
    ):
        each.to_json(tmp_path / "a.json")
        jsonschema.validate(json.loads((tmp_path / "a.json").read_text(encoding="utf-8")), schema)


def test_floats_keep_their_precision(bank, found, tmp_path: Path) -> None:
    found.to_json(tmp_path / "a.json")
    read = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))
    assert read["occurrences"][0]["token_embeddings"] == bank[0].token_embeddings[11].tolist()
    assert read["pairs"][0]["hidden_states"] == found.summary.pairs[0].hidden_states
    assert (read["findings"], read["targets"]) == (found.findings(), [None, None])


def test_the_version_is_the_schemas(found, schema) -> None:
    assert found.to_json()["version"] == schema["properties"]["version"]["const"] == 1


def test_what_is_no_number_is_null(bank) -> None:
    found = seen(bank, "bank")
    object.__setattr__(found.summary.pairs[0], "token_embeddings", math.nan)
    assert found.to_json()["pairs"][0]["token_embeddings"] is None


def test_rows_are_where_a_word_looks_or_the_links(bank, found) -> None:
    rows = [row for row in found.rows() if row["occurrence"] == "1" and row["layer"] == 2 and row["kind"] == "token"]
    top = found.summary.occurrences[0].attends[2].top
    assert [(row["text"], row["weight"]) for row in rows] == [(share.text, share.weight) for share in top]
    plain = seen(bank)
    links = [link for each in plain.summary.highlights for link in each.links]
    assert [row["weight"] for row in plain.rows()] == [link.weight for link in links]
    assert {row["text"] for row in plain.rows()} == {"1", "2"}


def test_rows_tables_and_json_of_a_chat_say_which_message_a_token_is_in(chat, schema) -> None:
    links = seen([chat])
    assert len(links.rows()) > 1
    for row in links.rows():
        assert [row["query_turn"], row["key_turn"]] == [chat.tokens[row[name]].turn for name in ("query", "key")]
    (table,) = (each for each in made(links.panels()) if each.name == "Every token, text 1")
    assert [row[1] for row in table.rows] == [token.turn for token in chat.tokens]
    word = seen([chat], "bank")
    turns = [(row["turn"], row["token"]) for row in word.rows()]
    assert {turn for turn, _ in turns} == {"user 1", "assistant 1", "", None}
    assert turns == [(None if n is None else chat.tokens[n].turn, n) for _, n in turns]
    assert "(assistant 1)" in " ".join(word.findings())
    for each in (links, word):
        jsonschema.validate(json.loads(json.dumps(each.to_json())), schema)
        assert [token.get("turn", "") for token in each.to_json()["tokens"][0]] == [token.turn for token in chat.tokens]
    tokens = word.page().texts[0]["tokens"]
    assert tokens["turn"] == [token.turn for token in chat.tokens]


def test_a_text_that_is_no_chat_says_nothing_of_messages(found) -> None:
    assert all("turn" not in row for row in found.rows())
    assert "turn" not in found.page().texts[0]["tokens"]
    assert "turn" not in found.to_json()["tokens"][0][0]


def test_what_was_not_read_is_said(minilm, bank) -> None:
    told = " ".join(seen([minilm.trace("a bank 銀 \u0001")], "bank", references=[minilm.trace("🏦")]).exactness())
    assert "--compare “🏦”: “🏦”" in told
    assert "text 1: “\\x01”" in told
    assert seen(bank).exactness() == []


def test_the_page_opens_where_the_sentences_look(bank, found) -> None:
    place = found.opening()
    assert f"layer {place['layer']}, head {place['head']}) and to " in found.findings()[0]
    asked = seen(bank, "bank", layer=2, head=3)
    assert (asked.opening()["layer"], asked.opening()["head"]) == (2, 3)
    assert asked.page().findings == asked.findings()


def test_the_page_shows_the_token_that_the_headline_is_about(minilm) -> None:
    text = "She bought a crowdfunded wristwatch from a Vietnamese haberdashery yesterday."
    answer = seen([trace := minilm.trace(text)], "crowdfunded")
    (own,), page = answer.summary.occurrences, answer.page()
    query, key, call, head, weight, expected = page.overview["links"][0][0]
    assert query in own.tokens[1:]
    assert (key, page.calls[call]["layer"], head) == (own.link.token, own.link.layer, own.link.head)
    assert page.opening["token"] == page.overview["tokens"][0] == query
    assert weight == pytest.approx(float(trace.attention[own.link.layer][head, query, key]), abs=1e-4)
    assert weight > expected


def test_several_texts_in_one_line(minilm) -> None:
    seen = regard.see(["a river bank", "a money bank"], "bank", references="river", model=minilm)
    traces = minilm.trace(["a river bank", "a money bank"])
    assert seen.summary.pairs == summarise(traces, "bank").pairs
    assert [each.text for each in seen.traces] == ["a river bank", "a money bank"]
    assert [each.word for each in seen.summary.references] == ["river", "river"]
    assert regard.see("a river bank", model=minilm).summary.word is None


def test_movement_has_a_control(minilm) -> None:
    """The package's sentences, those given, or too few of these."""
    seen = regard.see("We sat on a river bank.", "bank", references="river", model=minilm)
    assert seen.summary.control.sentences == regard.neutral_sentences("bank")
    assert seen.findings()[0].startswith("The text moves “bank” towards “river” (cosine ")
    own = [f"This is {{}} number {n}." for n in range(12)]
    given = regard.see("We sat on a river bank.", "bank", references="river", control=own, model=minilm)
    assert given.summary.neutral[0].sentences == 12
    few = regard.see("We sat on a river bank.", "bank", references="river", control=own[:3], model=minilm)
    reason = "3 of 3 neutral sentences have “bank”, 12 are needed"
    (note,) = [panel.note for panel in few.panels() if panel.name == "Reference words"]
    assert reason in note
    assert not any("neutral" in sentence for sentence in few.findings())
    assert regard.see("We sat on a river bank.", "bank", model=minilm).summary.control is None


def test_a_trace_was_traced_already(minilm, bank) -> None:
    with pytest.raises(regard.RegardError, match="model: it controls how texts are traced: leave it out for a trace"):
        regard.see(bank, "bank", model=minilm)
