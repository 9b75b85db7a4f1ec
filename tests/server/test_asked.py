"""What a browser may ask for is held to its fields and their kinds, and becomes the question of the library."""

from typing import Any

import pytest
from pydantic import ValidationError

from regard.questions.patch.asked import PatchAsked
from regard.server.asked import ExperimentAsked


@pytest.mark.parametrize(
    "asked", [{"wrod": "bank"}, {"word": 3}, {"noising": "yes"}, {"layers": ["1"]}, {"at": "bank"}, {"at": None}]
)
def test_a_request_has_no_other_field_and_no_number_as_a_string(asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExperimentAsked.model_validate({"experiment": {"kind": "patch", "texts": ["a", "b"], "asked": asked}})


def test_what_is_several_is_a_list() -> None:
    given = {"kind": "patch", "texts": ["a", "b"], "asked": {"word": "bank", "at": ["bank"], "layers": [1, 2]}}
    question = ExperimentAsked.model_validate({"experiment": given}).experiment.question()
    assert question == PatchAsked(word="bank", at=("bank",), layers=(1, 2))
