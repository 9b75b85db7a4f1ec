"""What a model is checked on."""

import pytest
import torch

from benchmarks.tiny import make
from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.check.readings import ENOUGH, TEXTS, long_text, own_inputs, readings_of
from tests.capture.test_families import DECODERS, PAIRS, tiny
from tests.support.own_models import no_checks_of_annotations, opened, pair

__all__ = ["no_checks_of_annotations"]  # the fixture


def test_texts_of_several_kinds_the_last_as_long_as_the_model_reads(minilm: Model) -> None:
    found = readings_of(minilm)
    assert [each.name for each in found] == [*TEXTS, "a long text"]
    lengths = [len(minilm.trace(**each.asked).tokens) for each in found]  # type: ignore[call-overload]
    assert lengths[1] == 3
    assert 0.8 * ENOUGH < lengths[-1] <= ENOUGH
    small = opened("gpt")  # of 31 positions
    assert 20 < len(small.trace(long_text(small)).tokens) <= 31
    assert [each.asked for each in readings_of(minilm, ["one", "two"])] == [{"text": "one"}, {"text": "two"}]
    assert readings_of(pair())[1].asked == {"text": "bank", "target": "bank"}


def test_ids_without_a_tokenizer_the_same_for_a_seed() -> None:
    model = Model(tiny("gpt2", DECODERS["gpt2"]), None, name="gpt2")
    one, again, other = readings_of(model), readings_of(model), readings_of(model, seed=1)
    assert [each.asked for each in one] == [each.asked for each in again] != [each.asked for each in other]
    assert [len(each.asked["ids"]) for each in one] == [11, 5, 31]  # of 31 positions
    inputs = own_inputs(model, one)
    assert inputs["input_ids"].shape == inputs["attention_mask"].shape == (3, 31)
    assert inputs["attention_mask"].sum(1).tolist() == [11, 5, 31]
    both = readings_of(Model(tiny("bart", PAIRS["bart"]), None, name="bart"))
    assert [len(each.asked["target_ids"]) for each in both] == [5, 31, 11]


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_other_inputs() -> None:
    model, inputs = make("vit")
    opened_vit = Model(model, None, name="vit")
    (found,) = readings_of(opened_vit, inputs=inputs)
    assert not found.of_tokens
    assert torch.equal(own_inputs(opened_vit, [found])["pixel_values"], inputs["pixel_values"])
    with pytest.raises(
        RegardError, match=r"vit reads 'pixel_values', .* put its preprocessor_config.json.* from Python"
    ):
        readings_of(opened_vit)
    with pytest.raises(RegardError, match="vit reads 'pixel_values', no texts: leave them out"):
        readings_of(opened_vit, ["a text"])


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_texts_that_are_none_are_refused_and_one_stands_alone(minilm: Model) -> None:
    assert [each.asked for each in readings_of(minilm, "A man")] == [{"text": "A man"}]
    wrong: dict[str, object] = {
        "given no text": [], "text 2: given int, needs to be a string": ["a", 3], "texts: given int": 3,
        "texts: given bytes": b"a",
    }  # fmt: skip
    for said, given in wrong.items():
        with pytest.raises(RegardError, match=said):
            readings_of(minilm, given)  # type: ignore[arg-type]
    with pytest.raises(RegardError, match="given texts and inputs"):
        readings_of(minilm, "a", {})
    bare = Model(tiny("gpt2", DECODERS["gpt2"]), None, name="gpt2")
    with pytest.raises(RegardError, match="gpt2 has no tokenizer to read texts: .*leave the texts out"):
        readings_of(bare, "a")
