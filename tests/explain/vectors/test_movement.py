import math

import torch

from regard.explain.vectors.movement import plane
from regard.explain.vectors.similarity import cosine


def test_a_plane_finds_the_directions_of_most_variance() -> None:
    torch.manual_seed(0)
    spread = torch.tensor([5.0, 3.0, 0.1, 0.1, 0.1])
    vectors = torch.randn(997, 5) * spread + 7
    flat = plane(vectors)
    assert abs(float(flat.axes[0, 0])) > 0.99
    assert abs(float(flat.axes[1, 1])) > 0.99
    assert abs(flat.share[0] - 25 / 34.03) < 0.03
    placed = flat.place(vectors)
    torch.testing.assert_close(placed.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-9, rtol=0)
    assert float(flat.axes[:, 0].max()) == float(flat.axes[:, 0].abs().max())  # the sign is fixed


def test_a_plane_of_two_points_is_a_line() -> None:
    flat = plane(torch.tensor([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]]))
    placed = flat.place(torch.tensor([[0.0, 0.0, 0.0], [3.0, 4.0, 0.0]]))
    assert math.isclose(float((placed[1] - placed[0]).norm()), 5, rel_tol=1e-9)
    assert math.isclose(sum(flat.share), 1, rel_tol=1e-9)


def test_cosine() -> None:
    assert math.isclose(cosine(torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0])), math.sqrt(0.5), rel_tol=1e-9)
    assert math.isnan(cosine(torch.zeros(2), torch.ones(2)))
