"""What every generator has in common: requests refused before a token is written, and one answer a prompt."""

from typing import Any

import pytest

from regard.errors import RegardError
from tests.support.own_models import opened, pair

TEXT = "A man is fishing on a river"


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens: given 0, needs a whole number of 1 or more"),
        ({"max_new_tokens": True}, "max_new_tokens: given True, needs"),
        ({"max_new_tokens": 2.0}, "max_new_tokens: given 2.0, needs"),
        ({"cache": "static"}, "cache: given 'static', needs 'dynamic'"),
        ({"seed": -1}, "seed: given -1"),
        ({"stop": ["a", ""]}, "needs strings that are not empty"),
        ({"ids": [1]}, "needs either prompt or its ids, given both"),
        ({"max_new_tokens": 25}, "prompt has 7 tokens and 25 new ones are more than the 31 that transformer takes"),
        ({"max_new_tokens": 25}, "max_new_tokens can be 24 at most"),
    ],
)
def test_requests(options: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        opened("gpt").generate(TEXT, **options)


@pytest.mark.usefixtures("no_checks_of_annotations")
@pytest.mark.parametrize("prompt", [b"bytes", {"a": 1}, 3])
def test_what_is_no_prompt(prompt: Any) -> None:
    with pytest.raises(RegardError, match="needs a string or several of them"):
        opened("gpt").generate(prompt)


def test_a_model_without_a_head_does_not_write() -> None:
    with pytest.raises(RegardError, match="it cannot generate"):
        opened("bert").generate(TEXT)


def test_several_prompts_are_each_as_if_alone() -> None:
    model = opened("gpt")
    together = model.generate([TEXT, "She takes"], max_new_tokens=3)
    alone = [model.generate(each, max_new_tokens=3) for each in (TEXT, "She takes")]
    assert [each.ids for each in together] == [each.ids for each in alone]
    assert [each.start for each in together] == [7, 2]
    assert [len(each.ids) - each.start for each in together] == [3, 3]
    assert {each.ended for each in together} == {"length"}
    with pytest.raises(RegardError, match="prompt 1 has 7 tokens and 25 new ones"):
        model.generate([TEXT, "She takes"], max_new_tokens=25)


def test_of_a_pair_the_start_token_takes_the_room() -> None:
    with pytest.raises(RegardError, match="the start token and 17 new ones are more than the 17 that"):
        pair(length=17, positions="learned").generate("A bank", max_new_tokens=17)


def test_the_text_so_far_is_told_after_each_token() -> None:
    model, told = opened("gpt"), []
    written = model.generate(TEXT, max_new_tokens=4, progress=told.append)
    assert [len(text.split()) for text in told] == [1, 2, 3, 4]
    assert told[-1] == written.new
    assert written.ids == model.generate(TEXT, max_new_tokens=4).ids
    assert written.ended == "length"


def test_what_the_listener_raises_ends_the_writing() -> None:
    told: list[str] = []

    def enough(text: str) -> None:
        told.append(text)
        if len(told) == 2:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        opened("gpt").generate(TEXT, max_new_tokens=9, progress=enough)
    assert len(told) == 2
