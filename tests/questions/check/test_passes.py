"""Weights, states, results and padding, held against the model's own code: and what is planted is named."""

from collections.abc import Iterator

import pytest
import torch

import regard.capture.hf_attention
from regard.attention.recording import _path
from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.check.claims import FAILS, HOLDS, Claim
from regard.questions.check.passes import (
    Read,
    batch_is_as_alone,
    left_padded,
    left_padding_is_its_own,
    parts_add_up_to_input,
    result_is_its_own,
    states_are_its_own,
    weights_are_its_own,
)  # fmt: skip
from regard.questions.check.readings import own_inputs, readings_of
from tests.capture.test_families import DECODERS, PAIRS, tiny

KINDS = ("gpt2", "llama", "gemma2", "mistral", "gpt_oss", "opt")


def reads_of(kind: str) -> list[Read]:
    if kind in PAIRS:
        model = Model(tiny(kind, PAIRS[kind]), None, name=kind)
    else:
        model = Model(tiny(kind, DECODERS[kind], language=True), None, name=kind)
    return [Read(model, each) for each in readings_of(model)]


def claims_of(reads: list[Read]) -> Iterator[Claim]:
    for each in reads:
        for measure in (weights_are_its_own, states_are_its_own, result_is_its_own, parts_add_up_to_input):
            yield from measure(each)
    yield from batch_is_as_alone(reads[0].model, reads)
    yield from left_padding_is_its_own(reads[0].model, reads)


@pytest.mark.parametrize("kind", [*KINDS, "marian", "t5"])
def test_all_hold(kind: str) -> None:
    found = list(claims_of(reads_of(kind)))
    assert {each.outcome for each in found} == {HOLDS}
    assert len(found) >= 3 * 4 + 3
    assert all(each.bound is not None and each.bound <= 1e-3 for each in found)


def test_a_wrong_kernel_is_named_by_layer_and_head(monkeypatch: pytest.MonkeyPatch) -> None:
    true = regard.capture.hf_attention.attend

    def wrong(query: torch.Tensor, *rest: torch.Tensor, **rule: object) -> object:
        if "h.1" in ".".join(_path.get()):
            query = query.clone()
            query[:, 2] *= 1.3
        return true(query, *rest, **rule)  # type: ignore[arg-type]

    monkeypatch.setattr(regard.capture.hf_attention, "attend", wrong)
    reads = reads_of("gpt2")
    found = [each for each in claims_of(reads) if each.outcome == FAILS]
    weights = [each for each in found if each.area == "attention"]
    assert len(weights) == 3
    assert all(each.where.startswith("layer 1, head 2: ") for each in weights)
    assert {each.of for each in found if each.area == "padding"} == {"padded on the right", "padded on the left"}
    assert {each.area for each in found} >= {"attention", "result", "padding"}


def test_a_batch_is_padded_on_the_left_with_positions_from_each_first_token() -> None:
    reads = reads_of("gpt2")
    model = reads[0].model
    right = own_inputs(model, [each.reading for each in reads])
    left = left_padded(model, right)
    for row, each in enumerate(reads):
        ids = list(each.reading.asked["ids"])
        assert left["input_ids"][row, -len(ids) :].tolist() == ids
        assert left["attention_mask"][row].tolist() == [0] * (31 - len(ids)) + [1] * len(ids)
        assert left["position_ids"][row, -len(ids) :].tolist() == list(range(len(ids)))
    alone = own_inputs(model, [reads[0].reading])
    assert left_padded(model, alone) is alone
    with pytest.raises(RegardError, match="one text needs no padding: give two of different lengths"):
        list(left_padding_is_its_own(model, reads[:1]))
    with pytest.raises(RegardError, match="its 2 texts have as many tokens each"):
        list(left_padding_is_its_own(model, [reads[0], reads[0]]))
    model._session.takes = model._session.takes - {"attention_mask"}
    with pytest.raises(RegardError, match="its forward takes no attention mask"):
        list(left_padding_is_its_own(model, reads))
