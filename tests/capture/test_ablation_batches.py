"""Which sets run together: every one of them once, from where the earliest begins, and as cheaply as can be."""

from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from regard.capture.ablation_batches import PASS_TOKENS, Start, ablation_batches_by_layer, by_position

STARTS = st.lists(st.tuples(st.just(0), st.integers(0, 3), st.integers(0, 40)), min_size=1, max_size=7)


def cost(batches: list[list[Start]], length: int, depth: int) -> int:
    return sum(
        (len(each) * (length - min(token for *_, token in each)) + PASS_TOKENS)
        * (depth - min(layer for _, layer, _ in each) + 1)
        for each in batches
    )


@given(starts=STARTS, most=st.integers(1, 5))
def test_no_cut_of_their_order_costs_less(starts: list[Start], most: int) -> None:
    length, depth = 41, 4
    found = list(by_position(starts, length, depth, most))
    assert sorted(n for numbers, _ in found for n in numbers) == list(range(len(starts)))
    for numbers, (stack, layer, token) in found:
        assert len(numbers) <= most
        assert (stack, layer) == min(starts[n][:2] for n in numbers)
        assert token == min(starts[n][2] for n in numbers)
    order = sorted(starts)
    every = []
    for count in range(len(order)):
        for cuts in combinations(range(1, len(order)), count):
            ends = [0, *cuts, len(order)]
            batches = [order[a:b] for a, b in pairwise(ends)]
            if all(len(each) <= most for each in batches):
                every.append(cost(batches, length, depth))
    assert cost([[starts[n] for n in numbers] for numbers, _ in found], length, depth) == min(every)


def test_positions_of_a_layer_are_several_passes() -> None:
    starts = [(0, layer, token) for layer in range(30) for token in range(64)]
    found = list(by_position(starts, 64, 30, 32))
    computed = sum(len(numbers) * (64 - start[2]) for numbers, start in found)
    assert computed < 1.25 * 30 * sum(range(1, 65))  # of what is not the same as before
    assert all(len({starts[n][1] for n in numbers}) == 1 for numbers, _ in found)


def test_by_layer_small_batches_are_joined() -> None:
    starts = [(0, 2, 5), (0, 1, 3), (0, 1, 9), (1, 0, 4)]
    assert list(ablation_batches_by_layer(starts, 16)) == [([1, 2, 0, 3], (0, 1, 0))]
    assert list(ablation_batches_by_layer(starts, 2)) == [([1, 2], (0, 1, 0)), ([0], (0, 2, 0)), ([3], (1, 0, 0))]
    assert list(ablation_batches_by_layer([], 4)) == list(by_position([], 8, 2, 4)) == []
