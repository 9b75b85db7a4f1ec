"""The directions of a head's scores: against the whole matrix, by closed form, and of a head that is known."""

from dataclasses import replace

import pytest
import torch

import regard
from regard.errors import RegardError
from regard.explain.weights.score_directions import score_directions
from tests.support.own_models import TEXTS, opened, pair


@pytest.mark.parametrize(("kind", "head"), [("bert", 2), ("llama", 0)])
def test_they_make_the_scores(kind: str, head: int) -> None:
    trace = opened(kind).trace(TEXTS[0])
    found = score_directions(trace, 1, head)
    own = trace.attention[1]
    query, key = own.query[0, head].double(), own.key[0, head * own.key.shape[1] // 3].double()
    whole = own.rule.scale * query @ key.T
    torch.testing.assert_close(found.scores(), whole - whole.mean(1, keepdim=True))
    expected = torch.linalg.svdvals(whole - whole.mean(1, keepdim=True))
    torch.testing.assert_close(found.strength, expected[: len(found.strength)], atol=1e-9, rtol=1e-6)
    assert float(found.share.sum()) == pytest.approx(1)
    rest = found.scores() - found.scores(1)
    assert float(rest.square().sum() / found.scores().square().sum()) == pytest.approx(1 - float(found.share[0]))
    weights = found.scores().masked_fill(own.scores[head] == -torch.inf, -torch.inf).softmax(-1)
    torch.testing.assert_close(weights.float(), own[head], atol=1e-5, rtol=1e-4)  # the mean key moves no weight


def test_closed_form() -> None:
    """Two tokens ask along the first axis, and one answers along it: one direction, with known ends."""
    trace = opened("bert").trace(TEXTS[0])
    own = trace.attention[0]
    n = len(trace.tokens)
    query, key = torch.zeros_like(own.query), torch.zeros_like(own.key)
    query[0, 1, 2, 0], query[0, 1, 5, 0] = 3.0, 4.0
    key[0, 1, 4, 0] = 2.0
    made = regard.AttentionMap(query, key, replace(own.rule, scale=1.0), ndim=3)
    trace.attention = (made, *trace.attention[1:])
    found = score_directions(trace, 0, 1)
    assert float(found.share[0]) == pytest.approx(1)
    assert float(found.strength[0]) == pytest.approx(5 * 2 * (1 - 1 / n) ** 0.5)  # |query| · |key less its mean|
    ends = found.ends(0)
    assert ends["asking"] == [f"{trace.tokens[5].text} (5)", f"{trace.tokens[2].text} (2)"]
    assert ends["answering"] == [f"{trace.tokens[4].text} (4)"]
    assert found.rows()[0]["answering"] == f"{trace.tokens[4].text} (4)"


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_bad_input() -> None:
    trace = opened("gpt").trace(TEXTS[0])
    with pytest.raises(RegardError, match="head 3 is out of range"):
        score_directions(trace, 0, 3)
    with pytest.raises(RegardError, match="direction 9 is out of range"):
        score_directions(trace, 0, 0).ends(9)
    with pytest.raises(RegardError, match=r"give its trace's .encoder or .decoder"):
        score_directions(pair().trace(TEXTS[0], target="Un"), 0, 0)  # type: ignore[arg-type]
