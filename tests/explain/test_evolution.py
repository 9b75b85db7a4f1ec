"""How attention formed: the traces of one sentence, side by side."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch

import regard
from regard import RegardError
from regard.explain.evolution import evolution
from regard.explain.weights.head_scores import head_scores
from regard.views.figures.evolution import draw_evolution
from tests.support import MONEY, RIVER


def test_steps_side_by_side(minilm) -> None:
    trace = minilm.trace(RIVER)
    cut = minilm.trace(RIVER, interventions=[regard.ablate(regard.head(0, 3))])
    found = evolution([(0, trace), (10, cut), (20, trace)], 1, 3)
    expected = trace.attention[1][3].double()
    torch.testing.assert_close(torch.tensor(found.weights[0]).double(), expected, atol=1e-6, rtol=0)
    assert found.steps == [0, 10, 20]
    entropy = torch.special.entr(expected).sum(-1).mean()
    assert found.entropy[0] == pytest.approx(float(entropy), abs=1e-5)
    assert found.change[0] == 0.0
    assert found.change[1] == found.change[2] > 0
    assert found.queries == [token.text for token in trace.tokens]
    assert len(found.embedded) == len({token.id for token in trace.tokens})
    assert all(path[0] == path[2] for path in found.paths)
    mean = evolution([(0, trace)], 1)
    torch.testing.assert_close(torch.tensor(mean.weights[0]), trace.attention[1].dense().mean(0).double().float(),
                               check_dtype=False, atol=1e-6, rtol=0)  # fmt: skip


@pytest.mark.parametrize("kind", ["svg", pytest.param("gif", marks=pytest.mark.long)])  # a film takes 5 s
def test_names_are_no_mathematics(minilm, tmp_path: Path, kind: str) -> None:
    trace = minilm.trace("a $x_1$ bank & $")
    assert draw_evolution(evolution([(0, trace), (1, trace)], 0), tmp_path / f"a.{kind}") == []
    if kind == "svg":
        drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
        assert ">$</text>" in drawn
        assert ">&amp;</text>" in drawn


def test_layers_and_heads_count_from_the_end_too(minilm) -> None:
    trace = minilm.trace(RIVER)
    last, same = evolution([(0, trace)], -1, -1), evolution([(0, trace)], 5, 11)
    assert (last.layer, last.head, last.title, last.weights) == (5, 11, same.title, same.weights)


def test_induction_of_every_head_and_when_it_formed(minilm) -> None:
    trace = minilm.trace("the cat saw the cat and the dog saw the dog")
    found = evolution([(0, trace), (10, trace)], 0)
    assert found.induction == [head_scores(trace).induction.tolist()] * 2
    best = found.induction_head()
    assert best is not None
    assert found.induction_of(*best)[-1] == max(score for row in found.induction[-1] for score in row)
    assert evolution([(0, minilm.trace("no word comes again"))], 0).induction == []
    grown = replace(found, steps=[0, 10, 20, 30], induction=[[[x, 0.1]] for x in (0.1, 0.5, 0.3, 0.8)])
    assert (grown.induction_head(), grown.formed(0, 0), grown.formed(0, 1)) == ((0, 0), 3, None)
    assert replace(grown, induction=[[[0.5, 0.1]]] * 4).formed(0, 0) == 0
    assert replace(grown, induction=[]).induction_head() is None


def test_what_cannot_be_side_by_side(minilm) -> None:
    river, money = minilm.trace([RIVER, MONEY])
    with pytest.raises(RegardError, match="the trace of step 7 is of another text"):
        evolution([(0, river), (7, money)], 0)
    with pytest.raises(RegardError, match="layer 6 is out of range: there are layers 0 to 5"):
        evolution([(0, river)], 6)
    with pytest.raises(RegardError, match="is no encoder-decoder"):
        evolution([(0, river)], 0, part="cross")
    with pytest.raises(RegardError, match="given no trace"):
        evolution([], 0)
