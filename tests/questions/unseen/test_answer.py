"""Tokens that nobody looks at: the numbers by plain loops over dense weights, and what is refused."""

import pytest
import torch

from regard.errors import RegardError
from regard.questions.unseen import answer
from regard.questions.unseen.answer import unseen
from tests.support.own_models import TEXTS, no_checks_of_annotations, opened, pair

__all__ = ["no_checks_of_annotations"]  # the fixture


@pytest.mark.parametrize("block", [1, 100, 1 << 22])
@pytest.mark.parametrize("kind", ["gpt", "bert", "alibi"])
def test_numbers_are_those_of_plain_loops(kind: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "BLOCK", block)
    trace = opened(kind).trace(TEXTS[0])
    maps, size = [weights.dense().double() for weights in trace.attention], len(trace.tokens)
    found = unseen(trace, 0.2)
    heads = [(n, h) for n, weights in enumerate(maps) for h in range(len(weights))]
    assert (found.heads, len(found.calls)) == (len(heads), len(maps))
    for k in range(size):
        others = [q for q in range(size) if q != k and (kind == "bert" or q > k)]  # others are causal
        assert found.may[k] == len(others)
        if not others:
            assert (k, found.most[k], found.mean[k], found.head[k]) == (size - 1, None, None, None)
            continue
        given = {q: sum(float(maps[n][h, q, k]) for n, h in heads) / len(heads) for q in others}
        single = {(n, h, q): float(maps[n][h, q, k]) for n, h in heads for q in others}
        most, head, mean = found.most[k], found.head[k], found.mean[k]
        assert most is not None
        assert head is not None
        assert most.weight == pytest.approx(max(given.values())) == pytest.approx(given[most.query])
        assert head.weight == max(single.values()) == single[head.layer, head.head, head.query]  # type: ignore[index]
        assert mean == pytest.approx(sum(given.values()) / len(others))
        for n, weights in enumerate(maps):
            assert found.layers[n][k] == pytest.approx(max(float(weights[:, q, k].mean()) for q in others))
    assert found.unseen == [k for k in found.order if (look := found.most[k]) and look.weight < 0.2]
    assert 0 < len(found.unseen) < len(found.order)


def test_where_no_other_token_may_look_a_token_is_told_apart() -> None:
    model = opened("gpt")
    trace = model.trace(TEXTS[0])
    found, last = unseen(trace, 1.0), len(trace.tokens) - 1
    assert sorted(found.unseen) == list(range(last))
    assert found.findings()[-1] == f"No other token may look at “.” ({last}): it is not counted."
    row = found.rows()[last]
    assert (row["unseen"], row["may_look"], row["most"], row["layer"]) == (False, 0, None, None)
    alone = unseen(model.trace("bank"))
    assert alone.findings() == ["No other token may look at “bank” (0): it is not counted."]
    assert alone.plot() is not None
    assert len(alone.page().panels) == 3


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_bad_input_is_refused() -> None:
    model, both = opened("bert"), pair()
    trace = both.trace(TEXTS[0], target="Un homme")
    with pytest.raises(RegardError, match="is an encoder-decoder: give its trace's .encoder or .decoder"):
        unseen(trace)  # type: ignore[arg-type]
    assert unseen(trace.encoder).heads == 6
    broken = model.trace(TEXTS[0])
    broken.attention[1].query[0, 1, 2] = torch.nan
    with pytest.raises(RegardError, match=r"weights that are no numbers \(NaN\)"):
        unseen(broken)
    broken.attention = ()
    with pytest.raises(RegardError, match="holds no attention"):
        unseen(broken)
