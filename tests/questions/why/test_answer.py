"""One occurrence and several share sentences and panels, and their JSON fits the schema."""

import json
from importlib.resources import files
from typing import Any

import jsonschema
import pytest

import regard
from regard.questions.why.answer import Why, WhyOfTexts


@pytest.fixture(scope="module")
def why(minilm: Any) -> Why:
    found: Why = regard.why(minilm, minilm.trace("a man on a river bank"), "bank")
    return found


def test_json_is_what_the_schema_says(why: Why) -> None:
    schema = json.loads(files("regard.questions.why").joinpath("why.schema.json").read_text(encoding="utf-8"))
    for found in (why, WhyOfTexts([("1a", why), ("1b", why)], [False], about=why.about)):
        data: Any = found.to_json()
        jsonschema.validate(data, schema)
        assert data["words"][0]["tokens_agreement"] == {
            "weight": why.tokens_agreement[0], "contribution": why.tokens_agreement[1],
        }  # fmt: skip
        assert len(data["words"]) == len(found.each())


def test_one_of_several_is_told_as_it_alone_is(why: Why) -> None:
    alone = WhyOfTexts([("1", why)], [False], about=why.about)
    assert alone.findings() == why.findings()
    assert alone.panels() == why.panels()
    assert alone.to_json() == why.to_json()
    assert alone.rows() == [{"label": "1"} | row for row in why.rows()]
    assert why.about.texts == (("a man on a river bank", None),)


def test_the_page_opens_at_the_text_without_each_token(minilm: Any, why: Why) -> None:
    found = WhyOfTexts([("1", why)], [False], about=why.about, traces=[minilm.trace("a man on a river bank")])
    page: Any = found.page().data()
    assert page["opening"]["view"] == "panel 0"
    assert [panel["name"] for panel in page["panels"]] == ["The text", "Tokens by effect", "Heads by effect"]
