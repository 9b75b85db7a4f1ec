"""Steps with a cache against one pass over all that was written; what is off is found."""

import dataclasses
from typing import Any

import pytest
import torch

from regard.errors import RegardError
from regard.generation.generate import HuggingFaceGenerator
from regard.models.model import Model
from regard.questions.check.claims import FAILS, HOLDS
from regard.questions.check.decoding import decoding_is_one_pass
from regard.questions.check.readings import Reading
from regard.text.reader import Reader
from regard.text.tokenizers import words
from tests.capture.test_families import DECODERS, tiny
from tests.questions.check.test_passes import Read, readings_of, reads_of
from tests.support.own_models import TEXTS


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
    assert (found[2].difference, found[2].total) == (1, 8)


def in_segments(monkeypatch: pytest.MonkeyPatch, segment: int) -> Read:
    """A text for a GPT-2 whose tokenizer gives segments, the last token's this one."""
    tokenizer = words(TEXTS, frame="bert")
    own = tiny("gpt2", DECODERS["gpt2"] | {"vocab_size": len(tokenizer)}, language=True)
    torch.nn.init.normal_(own.transformer.wte.weight)  # so that a segment, which is an id to GPT-2, changes the tokens
    model = Model(own, tokenizer, name="gpt2")
    true = Reader.read

    def read(*given: Any, **options: Any) -> Any:
        single, found = true(*given, **options)
        return single, [dataclasses.replace(e, segments=e.segments and (*e.segments[:-1], segment)) for e in found]

    monkeypatch.setattr(Reader, "read", read)
    return Read(model, Reading("a text", {"text": TEXTS[0]}))


@pytest.mark.parametrize("segment", [0, 1])
def test_written_tokens_are_in_the_segment_that_transformers_gives_them(
    segment: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = in_segments(monkeypatch, segment)
    assert {each.outcome for each in decoding_is_one_pass(read)} == {HOLDS}
    own = type(read.model.model)
    true = own.prepare_inputs_for_generation

    def without(self: Any, *given: Any, token_type_ids: Any = None, **kwargs: Any) -> Any:
        return true(self, *given, **kwargs)

    monkeypatch.setattr(own, "prepare_inputs_for_generation", without)  # as families that leave them out
    assert {each.outcome for each in decoding_is_one_pass(read)} == {HOLDS}


def test_segments_that_are_left_out_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    read = in_segments(monkeypatch, 1)
    true = HuggingFaceGenerator._run

    def without(self: Any, steps: Any, prompt: Any, request: Any) -> Any:
        return true(self, steps, dataclasses.replace(prompt, segments=None), request)

    monkeypatch.setattr(HuggingFaceGenerator, "_run", without)
    assert [each.outcome for each in decoding_is_one_pass(read)][1] == FAILS


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
