"""What may be asked about a score: what is refused without a model, and which head is chosen."""

from typing import Any

import pytest

from regard.errors import RegardError
from regard.questions.score.query import ScoreQuery
from tests.support.own_models import TEXTS, opened, pair


def test_what_is_refused_without_a_model() -> None:
    asked = ScoreQuery(query="bank", key=5)
    asked.check(1)
    with pytest.raises(RegardError, match="given 2 texts, needs one"):
        asked.check(2)
    with pytest.raises(RegardError, match="--key is needed: a word or a token's number"):
        ScoreQuery(query="bank").check(1, called=lambda field: f"--{field}")
    with pytest.raises(RegardError, match="query is empty"):
        ScoreQuery(query=" ", key=5).check(1)
    with pytest.raises(RegardError, match="part: given 'x', needs one of encoder, decoder, cross"):
        ScoreQuery(query=1, key=2, part="x").check(1)


@pytest.mark.parametrize(("layer", "head"), [(None, None), (1, None), (None, 2), (0, 1)])
def test_what_is_left_open_is_where_the_weight_is_largest(layer: int | None, head: int | None) -> None:
    model = opened("gpt")
    trace = model.trace(TEXTS[0])
    found = ScoreQuery(query=5, key=3, layer=layer, head=head).answer(model, [trace])
    weights: dict[Any, float] = {
        (n, h): float(trace.attention[n][h, 5, 3])
        for n in range(len(trace.attention))
        for h in range(trace.attention[n].query.shape[1])
        if layer in (None, n) and head in (None, h)
    }
    assert (found.layer, found.head) == max(weights, key=lambda place: weights[place])
    assert found.weight == pytest.approx(max(weights.values()))
    assert (found.query, found.key) == (trace.tokens[5].text, trace.tokens[3].text)


def test_of_a_pair_the_key_is_of_the_text() -> None:
    model = pair()
    trace = model.trace(TEXTS[0], target="Un homme")
    found = ScoreQuery(query=2, key="river", layer=1, head=0, part="cross").answer(model, [trace])
    assert found.key == "river"
    assert found.about.texts == ((TEXTS[0], "Un homme"),)
