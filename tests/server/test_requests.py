"""What a browser may ask for is held to its fields and their kinds, and becomes the question of the library."""

from typing import Any

import pytest
from pydantic import ValidationError

from regard.questions.queries import PatchQuery
from regard.server.requests import ExperimentRequest


@pytest.mark.parametrize(
    "asked", [{"wrod": "bank"}, {"word": 3}, {"noising": "yes"}, {"layers": ["1"]}, {"at": "bank"}, {"at": None}]
)
def test_a_request_has_no_other_field_and_no_number_as_a_string(asked: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ExperimentRequest.model_validate({"experiment": {"kind": "patch", "texts": ["a", "b"], "asked": asked}})


def test_what_is_several_is_a_list() -> None:
    given = {"kind": "patch", "texts": ["a", "b"], "asked": {"word": "bank", "at": ["bank"], "layers": [1, 2]}}
    question = ExperimentRequest.model_validate({"experiment": given}).experiment.question()
    assert question == PatchQuery(word="bank", at=("bank",), layers=(1, 2))
