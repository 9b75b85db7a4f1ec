"""Similarity of vectors, on vectors whose cosines are known."""

import math

import pytest
import torch

import regard
from regard.explain.vectors.similarity import (
    across_layers,
    across_texts,
    cosine,
    plane,
    states_of,
    table,
)


def test_two_vectors() -> None:
    a, b = torch.tensor([3.0, 4.0]), torch.tensor([4.0, 3.0])
    assert math.isclose(cosine(a, b), 0.96)
    assert math.isnan(cosine(torch.zeros(2), a))


PAIRS = {"cosine": cosine, "dot": lambda a, b: float(a.double() @ b.double()),
         "euclidean": lambda a, b: float((a.double() - b.double()).norm())}  # fmt: skip


@pytest.mark.parametrize(("measure", "function"), PAIRS.items())
def test_a_table_is_every_pair(measure: str, function) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(5, 7) + 100, torch.randn(3, 7) + 100
    made = table(a, b, measure)
    assert made.dtype == torch.float64
    expected = [[function(x, y) for y in b] for x in a]
    torch.testing.assert_close(made, torch.tensor(expected, dtype=torch.float64), atol=1e-12, rtol=1e-12)


def test_an_unknown_measure_is_refused() -> None:
    with pytest.raises(regard.RegardError, match="measure 'angle' is not known: it may be cosine, dot, euclidean"):
        table(torch.ones(1, 2), torch.ones(1, 2), "angle")


def test_the_two_banks_part(bank) -> None:
    river, money = bank
    made = across_texts([(river, "bank"), (money, "bank"), (river, "river")])
    assert made.shape == (7, 3, 3)
    torch.testing.assert_close(made.diagonal(dim1=1, dim2=2), torch.ones(7, 3, dtype=torch.float64))
    assert round(float(made[6, 0, 1]), 3) == 0.847
    assert made[0, 0, 1] > made[6, 0, 1]
    apart = across_texts([(river, "bank"), (money, "bank")], "euclidean")
    assert float(apart[0, 0, 1]) < 0.1 * float(apart[6, 0, 1])  # one learned embedding, at one place


def test_every_state_with_every_state(bank) -> None:
    river, money = bank
    made = across_layers((river, "bank"), (money, "bank"), "dot")
    assert made.shape == (7, 7)
    assert math.isclose(
        float(made[2, 5]), PAIRS["dot"](river.hidden_states[2][11], money.hidden_states[5][11]), rel_tol=1e-12
    )
    words = across_texts([(river, "bank"), (money, "bank")], "dot")
    torch.testing.assert_close(made.diagonal(), words[:, 0, 1])
    assert torch.equal(states_of(river, "bank"), torch.stack([state[11] for state in river.hidden_states]))
    assert torch.equal(states_of(river, 11), states_of(river, "bank"))


def test_the_axes_of_a_known_cloud() -> None:
    vectors = torch.zeros(4, 5)
    vectors[0, 3], vectors[1, 3], vectors[2, 1], vectors[3, 1] = 3.0, -3.0, 1.0, -1.0  # 9 + 9 and 1 + 1
    found = plane(vectors + torch.tensor([0.0, 7.0, 0.0, 2.0, 0.0]))
    torch.testing.assert_close(found.centre, torch.tensor([0.0, 7.0, 0.0, 2.0, 0.0]).double())
    torch.testing.assert_close(found.axes.T, torch.eye(5).double()[[3, 1]])
    assert found.share == (0.9, 0.1) or torch.allclose(torch.tensor(found.share), torch.tensor([0.9, 0.1]))
    torch.testing.assert_close(found.place(found.centre[None] + torch.eye(5)[3]), torch.tensor([[1.0, 0.0]]).double())


def test_what_lies_on_a_line_has_no_second_axis() -> None:
    found = plane(torch.tensor([[0.0, 0.0, 0.0], [2.0, 2.0, 2.0]]))
    torch.testing.assert_close(torch.tensor(found.share), torch.tensor([1.0, 0.0]))
    assert bool((found.axes.abs().argmax(0) >= 0).all())
