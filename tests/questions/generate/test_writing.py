"""A written text's numbers are the model's: its probabilities, and the attention of the rows that wrote it."""

import pytest
import torch

import regard
from regard.explain.logits import names_of
from regard.generation.generator import Generated
from regard.questions.generate.writing import describe_writing


def test_probabilities_are_the_models(done: Generated) -> None:
    trace = done.trace
    found = describe_writing(trace, done.start, done.ended, names_of(trace))
    assert [each.token for each in found.tokens] == list(range(done.start, len(trace.tokens)))
    chances = trace.logits.double().softmax(-1)
    for each in found.tokens:
        assert each.probability == pytest.approx(float(chances[each.token - 1, trace.tokens[each.token].id]))
        assert each.rank == 0  # the likeliest each time
        assert each.likeliest[0].probability == pytest.approx(each.probability)


def test_attention_is_parted_and_adds_up(done: Generated) -> None:
    trace = done.trace
    found = describe_writing(trace, done.start, done.ended, names_of(trace))
    assert found.special + found.sinks + found.prompt + found.own == pytest.approx(1, abs=1e-5)
    rows = torch.stack([trace.attention[n].dense()[:, done.start - 1 : -1] for n in range(2)])
    torch.testing.assert_close(
        torch.tensor(found.received, dtype=torch.float64), rows.double().mean((0, 1, 2)), atol=1e-6, rtol=0
    )


def test_nothing_to_look_at(minilm, done: Generated) -> None:
    with pytest.raises(regard.RegardError, match="needs a trace with logits"):
        describe_writing(minilm.trace("a bank"), 1, "end", str)
    with pytest.raises(regard.RegardError, match="at least one token before"):
        describe_writing(done.trace, 0, "end", str)
    nothing = describe_writing(done.trace, len(done.trace.tokens), "end", str)
    assert (nothing.tokens, nothing.own, sum(nothing.received)) == ([], 0.0, 0.0)
