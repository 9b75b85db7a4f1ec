"""Settings of a generation: what is refused, what the model's own say, and what of them is put aside."""

from typing import Any

import pytest
from transformers import GenerationConfig

from regard.errors import RegardError
from regard.generation.settings import check_generation_options, settings, stops


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"temprature": 1.0}, "did you mean 'temperature'"),
        ({"temperature": 0}, "temperature: given 0, needs a number above 0"),
        ({"temperature": True}, "temperature: given True, needs a number above 0"),
        ({"temperature": float("nan")}, "temperature: given nan, needs"),
        ({"top_k": 2.5}, "top_k: given 2.5, needs a whole number"),
        ({"top_p": 1.5}, "top_p: given 1.5, needs a number above 0, 1 at most"),
        ({"do_sample": 1}, "do_sample: given 1, needs True or False"),
        ({"num_beams": 3}, "num_beams: given 3, needs 1: beams are many texts"),
        ({"new_tokens": 8}, "did you mean 'max_new_tokens'"),
        ({"min_new_tokens": 8}, "min_new_tokens: given 8, max_new_tokens is 7"),
    ],
)
def test_what_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        check_generation_options(options, 7)


@pytest.mark.parametrize("options", [{}, {"top_p": 1, "top_k": 0}, {"num_beams": 1}, {"min_new_tokens": 7}])
def test_what_is_not(options: dict[str, Any]) -> None:
    check_generation_options(options, 7)


def test_the_models_own_settings_hold_where_options_say_nothing() -> None:
    own = GenerationConfig(do_sample=True, temperature=0.3, top_k=11, num_beams=4)
    found, notes = settings(own, {"top_k": 7}, 13, "tiny")
    assert (found.do_sample, found.temperature, found.top_k, found.max_new_tokens) == (True, 0.3, 7, 13)
    assert found.num_beams == 1
    assert len(notes) == 1
    assert "num_beams=4" in notes[0]
    assert (own.top_k, own.num_beams) == (11, 4)  # they are the model's, and stay
    with pytest.raises(RegardError, match="top_p has no effect on a greedy choice: give do_sample=True with it"):
        settings(GenerationConfig(), {"top_p": 0.5}, 13, "tiny")


def test_stop_strings() -> None:
    assert stops("end", object(), "tiny") == ["end"]
    assert stops(("a", "b"), object(), "tiny") == ["a", "b"]
    assert stops((), None, "tiny") == []
    with pytest.raises(RegardError, match="needs strings that are not empty"):
        stops(["a", ""], object(), "tiny")
    with pytest.raises(RegardError, match="tiny has no tokenizer that spells 'a'"):
        stops("a", None, "tiny")
