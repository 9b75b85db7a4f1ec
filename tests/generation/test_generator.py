"""What every generator has in common: requests refused before a token is written, and one answer a prompt."""

import pytest

from regard.errors import RegardError
from tests.support.own_models import opened, pair

TEXT = "A man is fishing on a river"


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
