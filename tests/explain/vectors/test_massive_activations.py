"""Lengths of states as multiples of the median."""

from copy import copy

import torch

from regard.explain.vectors.massive_activations import own, state_lengths_over_median
from regard.text.tokens import Token
from regard.trace.trace import Trace


def text(trace: Trace, *lengths: list[float], special: tuple[int, ...] = ()) -> Trace:
    """A trace whose states have these lengths, one list a state."""
    made = copy(trace)
    made.tokens = [Token(n, "", n, n + 1, None, n in special) for n in range(len(lengths[0]))]
    made.hidden_states = [torch.tensor(each)[:, None] * torch.tensor([[0.6, 0.8]]) for each in lengths]
    return made


def test_the_layer_where_it_is_most_counts_and_special_tokens_are_not_in_the_median(bank) -> None:
    trace = text(bank[0], [9.0, 1.0, 2.0, 3.0], [9.0, 2.0, 2.0, 60.0], special=(0,))
    assert own(trace) == [1, 2, 3]
    found = state_lengths_over_median([trace])
    torch.testing.assert_close(found[id(trace)], torch.tensor([4.5, 1.0, 1.0, 30.0]).double())


def test_others_are_measured_by_the_same_median(bank) -> None:
    trace, other = text(bank[0], [1.0, 2.0, 3.0]), text(bank[0], [8.0, 1.0])
    found = state_lengths_over_median([trace], [other])
    torch.testing.assert_close(found[id(other)], torch.tensor([4.0, 0.5]).double())
