"""Both texts of a steered model have their numbers; where they part is the first token that is another."""

import pytest

import regard
from regard.display.answer import panel_data
from regard.display.terminal_parts import plain_lines_of_parts
from regard.errors import RegardError
from regard.explain.logits import names_of
from regard.questions.generate.answer import Generation, generated
from regard.questions.generate.writing import describe_writing
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers, shows
from tests.support import own_models

GIVEN = "A man is"


@pytest.fixture(scope="module")
def both() -> Generation:
    model = own_models.opened("gpt")
    push = regard.steer(9 * model.trace("She takes").last_hidden_state[0], layer=1)
    plain = model.generate(GIVEN, max_new_tokens=5)
    return generated(plain, model.generate(GIVEN, max_new_tokens=5, interventions=[push]), "how")


def test_rows_are_the_numbers_of_every_written_token(both: Generation) -> None:
    done = both.traces[0]
    found = describe_writing(done.trace, done.start, done.ended, names_of(done.trace))
    rows = generated(done).rows()
    assert [row["probability"] for row in rows] == [each.probability for each in found.tokens]
    assert [row["token"] for row in rows] == list(range(done.start, len(done.trace.tokens)))
    assert [row["likeliest_other"] == row["text"] for row in rows] == [False] * len(rows)
    assert {row["written"] for row in both.rows()} == {"plain", "steered"}


def test_json_has_both_texts_and_how_they_were_written(both: Generation) -> None:
    data = both.to_json()
    assert data["format"] == "regard generate"
    assert data["steering"] == "how"
    texts = [(each["called"], each["text"], each["given"]) for each in data["written"]]  # type: ignore[attr-defined]
    assert texts == [
        (name, done.text, done.start) for name, done in zip(("plain", "steered"), both.traces, strict=True)
    ]
    assert generated(both.traces[0]).to_json()["steering"] is None


def test_where_both_texts_part(both: Generation) -> None:
    first, second = (done.ids[done.start :] for done in both.traces)
    assert both.first_difference == next(n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
    at, least = both.findings()
    tokens = [text.how.tokens for _, text in both.each]
    assert numbers_in(at)[0] == f"{both.first_difference + 1}"
    for n, name, printed in zip((0, 1), names_in(at), numbers_in(at)[1:], strict=True):
        assert name == tokens[n][both.first_difference].text.strip()
        shows(printed, tokens[n][both.first_difference].probability)
    for written, printed in zip(tokens, numbers_in(least), strict=True):
        shows(printed, min(each.probability for each in written))
    shown_with_its_numbers(both, also=[both.first_difference + 1])
    same = generated(both.traces[0], both.traces[0], "how")
    assert same.first_difference is None
    (only,) = same.findings()
    assert "--strength" in only
    assert "--layer" in only


def test_one_that_ended_earlier_parts_where_it_ended(both: Generation) -> None:
    model = own_models.opened("gpt")
    short = model.generate(GIVEN, max_new_tokens=2)
    found = generated(both.traces[0], short, "how")
    assert found.first_difference == 2
    assert len(names_in(found.findings()[0])) == 1
    assert numbers_in(found.findings()[0])[0] == "3"


def test_both_texts_are_whole_on_the_screen(both: Generation) -> None:
    out = "\n".join(plain_lines_of_parts(both.shown(200), 200))
    for done in both.traces:
        assert done.text in out


def test_the_page_opens_at_the_writing_and_calls_both(both: Generation) -> None:
    page = both.page()
    assert page.overview["kind"] == "writing"  # type: ignore[index]
    assert [text["name"] for text in page.texts] == ["plain", "steered"]
    assert page.panels == [panel_data(panel) for panel in both.tabs()]
    assert [len(text["steps"]) for text in page.overview["texts"]] == [5, 5]  # type: ignore[index,union-attr]


def test_a_translation_is_another_question() -> None:
    with pytest.raises(RegardError, match="expected text from a causal model"):
        generated(own_models.pair().generate("A bank", max_new_tokens=2))
