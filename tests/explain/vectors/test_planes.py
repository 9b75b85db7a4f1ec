"""Planes of most variance, on points whose axes are known."""

import torch

from regard.explain.vectors.planes import comparisons, plane, plane_axes_turned


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


def test_every_two_pairs_of_a_group_the_nearer_first() -> None:
    points = torch.tensor([[0.0], [1.0], [3.0], [-1.0]]).double()
    wanted = comparisons(points, [[(0, 1), (0, 2), (0, 3)], [(1, 2), (2, 3)]])
    pairs = [tuple(pair) for pair in wanted.pairs.tolist()]
    compared = {(pairs[near], pairs[far]) for near, far in zip(wanted.near.tolist(), wanted.far.tolist(), strict=True)}
    # 0-1 and 0-3 are equally far apart: not compared; pairs of different groups neither
    assert compared == {((0, 1), (0, 2)), ((0, 3), (0, 2)), ((1, 2), (2, 3))}
    assert bool(wanted.kept(points).all())
    assert not bool(wanted.kept(points.flip(0)).all())


def test_a_plane_that_hides_a_direction_is_turned_towards_it() -> None:
    points = torch.tensor([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.9, 0.0, 5.0], [0.0, 1.5, 0.0]]).double()
    wanted = comparisons(points, [[(0, 1), (0, 2), (0, 3)]])
    axes = torch.eye(3).double()[:, :2]  # without the third direction point 2 seems nearest
    assert not bool(wanted.kept(points @ axes).all())
    found = plane_axes_turned(points, axes, wanted)
    assert bool(wanted.kept(points @ found).all())
    torch.testing.assert_close(found.T @ found, torch.eye(2).double())


def test_a_plane_is_found_from_other_axes_where_the_first_lead_to_none() -> None:
    """Eight points of random states that have a right plane, though turning from the widest one ends before it."""
    torch.manual_seed(3)
    found = 0
    for _ in range(6):
        points = torch.nn.functional.normalize(torch.randn(8, 24).double(), dim=1)
        groups = [[(n, mark) for mark in range(3, 8)] for n in range(3)]
        groups += [[(n, mark) for n in range(3)] for mark in range(3, 8)]
        wanted = comparisons(points, groups)
        axes = plane_axes_turned(points, torch.linalg.qr(torch.randn(24, 2).double())[0], wanted)
        torch.testing.assert_close(axes.T @ axes, torch.eye(2).double())
        found += bool(wanted.kept(points @ axes).all())
    assert found == 6
