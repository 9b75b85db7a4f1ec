"""The text whose pass is changed: which calls, which other text, and when a claim says nothing."""

import pytest
import torch

from regard.capture.interventions.names import ablate, head
from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.check.changing import Changing
from regard.questions.check.claims import FAILS
from regard.questions.check.own_code import Changes
from regard.questions.check.passes import Read
from regard.questions.check.readings import Reading
from tests.capture.test_families import DECODERS, IDS, PAIRS, TARGET, tiny


def text(kind: str, ids: list[int] = IDS) -> Changing:
    if kind in PAIRS:
        model = Model(tiny(kind, PAIRS[kind]), None, name=kind)
        return Changing(Read(model, Reading("ids", {"ids": ids, "target_ids": TARGET})))
    model = Model(tiny(kind, DECODERS[kind], language=True), None, name=kind)
    return Changing(Read(model, Reading("ids", {"ids": ids})))


def test_calls_are_in_the_order_of_the_pass() -> None:
    assert [(each.number, each.part, each.layer, each.heads) for each in text("llama").calls] == [
        (0, None, 0, 4), (1, None, 1, 4),
    ]  # fmt: skip
    found = text("bart").calls
    assert [each.part for each in found] == ["encoder"] * 2 + ["decoder", "cross"] * 3
    assert [(each.queries, each.keys) for each in found[1:4]] == [(7, 7), (5, 5), (5, 7)]
    assert [each.number for each in text("bart").chosen] == [0, 3, 6]


def test_the_other_text_has_the_same_tokens_in_the_opposite_order() -> None:
    changing = text("gpt2")
    assert changing.other.reading.asked["ids"] == [5, 9, 41, 60, 3, 17, 2]
    assert changing.place() == 4
    assert IDS[changing.place()] != changing.other.reading.asked["ids"][changing.place()]
    assert changing.paths == ["transformer.h.0", "transformer.h.1"]
    assert text("bart").paths == ["decoder.layers.0", "decoder.layers.1", "decoder.layers.2"]
    with pytest.raises(RegardError, match="the same text"):
        text("gpt2", [5, 7, 7, 2]).place()


def test_what_changes_nothing_says_nothing_and_what_is_not_done_fails() -> None:
    changing = text("gpt2")
    with pytest.raises(RegardError, match="changes nothing in the model's own code"):
        changing.claim("said", "of", [], Changes())

    def halved(output: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        output[:, :, 1] /= 2
        return output

    changes = Changes(after={0: halved})
    undone, otherwise = (changing.claim("said", "of", each, changes) for each in ([], [ablate(head(0, 1))]))
    assert (undone.outcome, otherwise.outcome) == (FAILS, FAILS)
    assert undone.where.startswith("it changes ")
