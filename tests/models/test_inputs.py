"""What `trace` is given, as tokens: which combinations are refused, and the way back from a trace."""

from dataclasses import replace
from typing import Any

import pytest

import regard
from benchmarks.tiny import make
from regard.errors import RegardError
from regard.models.inputs import model_source_of_trace, read_inputs
from regard.models.model import Model
from tests.support.own_models import opened, pair

TEXT, TARGET = "A man is fishing on a river bank.", "Une banque"


def read(model: Any, *given: Any, **options: Any) -> Any:
    return read_inputs(model._reader, model._session, *given, **options)


def test_texts_and_ids() -> None:
    model = opened("bert")
    single, (one,), none = read(model, TEXT, None, None, None)
    assert (single, none, one.text) == (True, None, TEXT)
    several, sources, _ = read(model, [TEXT, "A bank"], None, None, None)
    assert (several, [each.text for each in sources]) == (False, [TEXT, "A bank"])
    assert read(model, None, None, one.ids, None)[1][0].ids == one.ids


def test_targets_are_one_for_each_source_and_read_one_late() -> None:
    model = pair()
    single, (source,), targets = read(model, TEXT, TARGET, None, None)
    assert single
    assert targets is not None
    alone = read(model, TARGET, TARGET, None, None)[1][0]
    assert targets[0].ids == [model.model.config.start, *alone.ids[:-1]]
    assert source.text == TEXT


def test_what_runs_a_trace_again_refuses_inputs_that_are_no_text() -> None:
    model, inputs = make("vit")
    seen = Model(model, None, name="vit")
    trace = seen.trace(inputs=inputs)
    for asks in (
        lambda: regard.attribution(seen, trace, 3, toward=trace.last_hidden_state[0]),
        lambda: regard.score_sources(seen, trace, 1, 2, layer=0, head=0),
        lambda: regard.why(seen, trace, trace.tokens[1].text),
    ):
        with pytest.raises(RegardError, match="the trace comes from inputs other than text, so it cannot be run again"):
            asks()


@pytest.mark.parametrize(
    ("kind", "given", "says"),
    [
        ("one", (TEXT, TARGET, None, None), "target: transformer is not an encoder-decoder"),
        ("one", (TEXT, None, None, [1]), "target: transformer is not an encoder-decoder"),
        ("one", (TEXT, None, None, None, {"pixel_values": 1}), "trace: pass only one of a text, ids or inputs"),
        ("pair", (TEXT, None, None, None), "pass a target as well as the text"),
        ("pair", ([TEXT, "A bank"], [TARGET], None, None), "target: got 1, expected one for each of the 2 texts"),
        ("pair", ([TEXT], TARGET, None, None), "target: got 1, expected one for each of the 1 texts"),
    ],
)
def test_what_is_refused(kind: str, given: tuple[Any, ...], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        read(opened("gpt") if kind == "one" else pair(), *given)


def test_a_trace_says_what_was_read() -> None:
    model = opened("bert")
    trace = model.trace(TEXT)
    again = model_source_of_trace(model._reader, trace)
    assert (again.text, again.ids) == (TEXT, [token.id for token in trace.tokens])
    assert again.segments is not None  # of the tokenizer, not of ids
    by_ids = model.trace(ids=[token.id for token in trace.tokens[:5]])
    assert model_source_of_trace(model._reader, by_ids).ids == [token.id for token in trace.tokens[:5]]
    assert model_source_of_trace(replace(model._reader, tokenizer=None), trace).segments is None
