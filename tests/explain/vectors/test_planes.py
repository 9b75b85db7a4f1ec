"""The plane of most variance, on points whose axes are known."""

import torch

from regard.explain.vectors.planes import plane


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
