"""Settings of a generation: what is refused, what the model's own say, and what of them is put aside."""

import pytest
from transformers import GenerationConfig

from regard.errors import RegardError
from regard.generation.settings import settings, stops


def test_the_models_own_settings_hold_where_options_say_nothing() -> None:
    own = GenerationConfig(do_sample=True, temperature=0.3, top_k=11, num_beams=4)
    found, notes = settings(own, {"top_k": 7}, 13, "tiny")
    assert (found.do_sample, found.temperature, found.top_k, found.max_new_tokens) == (True, 0.3, 7, 13)
    assert found.num_beams == 1
    assert len(notes) == 1
    assert "num_beams=4" in notes[0]
    assert (own.top_k, own.num_beams) == (11, 4)  # they are the model's, and stay
    with pytest.raises(RegardError, match="top_p has no effect on greedy decoding: pass do_sample=True as well"):
        settings(GenerationConfig(), {"top_p": 0.5}, 13, "tiny")


def test_stop_strings() -> None:
    assert stops("end", object(), "tiny") == ["end"]
    assert stops(("a", "b"), object(), "tiny") == ["a", "b"]
    assert stops((), None, "tiny") == []
    with pytest.raises(RegardError, match="expected strings that are not empty"):
        stops(["a", ""], object(), "tiny")
    with pytest.raises(RegardError, match="tiny has no tokenizer that spells 'a'"):
        stops("a", None, "tiny")
