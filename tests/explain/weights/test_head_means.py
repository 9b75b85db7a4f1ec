"""Means of head scores over several texts."""

from typing import Any

import numpy as np
import pytest

from regard.errors import RegardError
from regard.explain.weights.alignment import align
from regard.explain.weights.head_means import HeadMeans, cross_head_scores, mean_scores
from regard.explain.weights.head_scores import NAMES, head_scores
from tests.support.own_models import translator

PAIRS = [("the white table stands", "la table blanche reste"), ("the table", "la table")]


def test_a_text_counts_by_its_queries(minilm: Any) -> None:
    texts = ["The cat saw the cat and the dog saw the dog.", "A short one."]
    each = [head_scores(trace) for trace in minilm.trace(texts)]
    found = mean_scores(each)
    assert tuple(found.scores) == NAMES
    n, m = each[0].queries, each[1].queries
    expected = (each[0].previous * n + each[1].previous * m) / (n + m)
    np.testing.assert_allclose(found.scores["previous"], expected, rtol=1e-12)
    assert each[1].inductions == 0  # so that the mean is that of the other text
    np.testing.assert_allclose(found.scores["induction"], each[0].induction, rtol=1e-12)
    assert found.counts == {
        "queries": n + m, "nexts": n + m, "duplicates": each[0].duplicates, "inductions": each[0].inductions
    }  # fmt: skip
    assert (found.count("previous"), found.count("induction")) == (n + m, each[0].inductions)
    assert found.rows()[13]["layer"] == 1
    assert found.rows()[13]["previous"] == found.scores["previous"][1, 1]


def test_no_query_has_such_a_key(minilm: Any) -> None:
    found = mean_scores([head_scores(minilm.trace("A short one."))])
    assert np.isnan(found.scores["induction"]).all()
    assert found.best("induction") == []


def test_best_names_layers_of_the_model() -> None:
    scores = {"previous": np.array([[0.1, 0.9], [0.3, np.nan]])}
    found = HeadMeans(scores, {"queries": 1}, (4, 7))
    assert found.best("previous") == [(4, 1, 0.9), (7, 0, 0.3), (4, 0, 0.1)]
    assert found.best("previous", 1, by=-scores["previous"]) == [(4, 0, 0.1)]


def test_what_cannot_be_averaged_is_refused(minilm: Any) -> None:
    with pytest.raises(RegardError, match="given no scores, needs those of one text or more"):
        mean_scores([])
    traces = [minilm.trace("A short one.", layers=layers) for layers in ([0], [1])]
    with pytest.raises(RegardError, match="the traces hold different layers"):
        mean_scores([head_scores(trace) for trace in traces])


@pytest.fixture(scope="module")
def pairs() -> list[Any]:
    model = translator(*(text for pair in PAIRS for text in pair))
    return model.trace([text for text, _ in PAIRS], target=[target for _, target in PAIRS])


def test_scores_are_the_means_that_they_say(pairs: list[Any]) -> None:
    found = cross_head_scores(pairs)
    rows: dict[str, list[float]] = {"written": [], "read": [], "successor": [], "special": []}
    for pair in pairs:
        weights = pair.decoder.cross[1][2].double()
        special = [n for n, token in enumerate(pair.encoder.tokens) if token.special]
        for each in align(pair).tokens:
            if each.written is None or pair.decoder.tokens[each.token].special:
                continue
            place = each.written.top[0].token
            rows["written"].append(float(weights[each.token - 1, place]))
            rows["read"].append(float(weights[each.token, place]))
            rows["special"].append(float(weights[each.token, special].sum()))
            if not pair.encoder.tokens[place + 1].special:
                rows["successor"].append(float(weights[each.token, place + 1]))
    assert found.counts == {"queries": len(rows["written"]), "successors": len(rows["successor"])}
    assert len(rows["written"]) == 6  # 4 and 2 words
    for name, values in rows.items():
        assert found.scores[name][1, 2] == pytest.approx(np.mean(values), abs=1e-9), name


def test_nothing_is_refused() -> None:
    with pytest.raises(RegardError, match="given no trace"):
        cross_head_scores([])


def test_a_translators_heads(opus_mt: Any) -> None:
    """Upper layers look at the source of what they write, lower ones at that of what they have read."""
    texts = ["The old man walked along the river bank.", "The red car is very fast."]
    found = cross_head_scores([opus_mt.generate(text, max_new_tokens=30).trace for text in texts])
    (written, _, most), (read, _, _) = found.best("written", 1)[0], found.best("read", 1)[0]
    assert written > read
    assert most > 0.5
