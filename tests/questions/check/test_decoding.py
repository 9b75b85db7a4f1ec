"""Steps with a cache against one pass over all that was written; what is off is found."""

import dataclasses
from typing import Any

import pytest

from regard.errors import RegardError
from regard.models.model import Model
from regard.questions.check.claims import FAILS, HOLDS
from regard.questions.check.decoding import decoding_is_one_pass
from tests.capture.test_families import DECODERS, tiny
from tests.questions.check.test_passes import Read, readings_of, reads_of


@pytest.mark.parametrize("kind", ["gpt2", "mistral", "gpt_oss"])
def test_all_hold(kind: str) -> None:
    found = list(decoding_is_one_pass(reads_of(kind)[0]))
    assert {each.outcome for each in found} == {HOLDS}
    assert len(found) in (3, 6)  # with one kind of cache, or both
    assert found[2].said == "tokens are those transformers writes"


def test_what_is_off_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read = reads_of("gpt2")[0]
    true = Model.generate

    def wrong(self: Model, **given: Any) -> Any:
        made = true(self, **given)
        made.trace.logits[-1] += 1.0
        return dataclasses.replace(made, ids=(*made.ids[:-1], made.ids[-1] + 1))

    monkeypatch.setattr(Model, "generate", wrong)
    found = list(decoding_is_one_pass(read))
    assert [each.outcome for each in found[:3]] == [HOLDS, FAILS, FAILS]
    assert found[2].where == "token 7 of those written"


def test_a_text_that_ends_too_soon_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read, true = reads_of("gpt2")[0], Model.generate

    def ended(self: Model, **given: Any) -> Any:
        made = true(self, **given)
        return dataclasses.replace(made, ids=made.ids[:-1])

    monkeypatch.setattr(Model, "generate", ended)
    found = list(decoding_is_one_pass(read))[2]
    assert (found.outcome, found.where) == (FAILS, "token 7 of those written")


def test_a_model_that_does_not_write_is_refused() -> None:
    model = Model(tiny("gpt2", DECODERS["gpt2"]), None, name="gpt2")
    with pytest.raises(RegardError, match="has no language head that writes"):
        list(decoding_is_one_pass(Read(model, readings_of(model)[0])))
