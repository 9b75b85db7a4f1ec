"""Read some of a shard's windows in float32 too, and compare what another precision gives with it."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.corpus.closeness import PARTS, Closeness
from regard.corpus.writing.plain_stack import states_by_window
from regard.models.model import Model
from regard.models.states import StateBatch, Window, read_states

TOKENS = 512  # at most about as many are read twice, of each shard's


class StateComparison:
    """Windows from all over a shard that were read in float32. found: how near the states are that were seen since."""

    def __init__(self, model: Model, windows: Sequence[Window], layers: Sequence[int]) -> None:
        """Read the windows."""
        step = max(1, -(-sum(len(each.ids) for each in windows) // TOKENS))
        chosen = range(0, len(windows), step)
        read = states_by_window(read_states(model, [windows[number] for number in chosen], layers))
        self._expected = {chosen[number]: states for number, states in read.items()}
        self.found = Closeness()

    def seen(self, batches: Iterator[StateBatch]) -> Iterator[StateBatch]:
        """Pass batches of all windows on, and compare those that were read twice."""
        for batch in batches:
            for states, number in zip(batch.states, batch.numbers, strict=True):
                if number in self._expected:
                    self.found += closeness_of_states(states, self._expected.pop(number))
            yield batch


def closeness_of_states(found: Float[Tensor, "K L M"], expected: Float[Tensor, "K L M"]) -> Closeness:
    """Compare the states of one window, token by token, with float32's."""
    off = _billionths_below_one(found, expected)
    following = _billionths_below_one(expected[:, 1:], expected[:, :-1])
    return Closeness(off.numel(), int(off.sum()), int(off.max()), following.numel(), int(following.sum()))


def _billionths_below_one(one: Float[Tensor, "K L M"], other: Float[Tensor, "K L M"]) -> Tensor:
    cosines = torch.cosine_similarity(one.double(), other.double(), dim=-1)
    return ((1 - cosines) * PARTS).round().clamp_min(0).long()
