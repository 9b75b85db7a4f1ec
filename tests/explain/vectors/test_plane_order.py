"""Comparisons of distances, and the turning of a plane that keeps them."""

import torch

from regard.explain.vectors.plane_order import comparisons, turned


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
    found = turned(points, axes, wanted)
    assert bool(wanted.kept(points @ found).all())
    torch.testing.assert_close(found.T @ found, torch.eye(2).double())


def test_a_plane_that_keeps_all_stays() -> None:
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]).double()
    axes = torch.eye(2).double()
    assert turned(points, axes, comparisons(points, [[(0, 1), (0, 2)]])) is axes
