"""Choose which sets of ablations of one text run together, so that little is computed that stays as it was.

A batch is computed from the earliest start of its sets on. The more sets are in it, the more of what they have is
computed again for nothing; the fewer, the more passes there are, each of which has a cost of its own.
"""

import math
from collections.abc import Iterator, Sequence

SMALL = 0.25  # of the largest batch: below it, sets of later starts join
PASS_TOKENS = 64  # what a pass costs beside its tokens, in tokens

Start = tuple[int, int, int]  # the stack (1: a decoder's) and the layer in it that a set begins in, and its first token


def ablation_batches_by_layer(starts: Sequence[Start], most: int) -> Iterator[tuple[list[int], Start]]:
    """Yield the numbers of sets that run together from token 0, at most so many, and the first start among them.

    They are of one layer, but where that makes a small batch, those of the next layers join it: what is then computed
    again for them costs less than a pass of their own.
    """
    layers = [(stack, layer, 0) for stack, layer, _ in starts]
    order = sorted(range(len(layers)), key=lambda n: (layers[n], n))
    batch: list[int] = []
    for n in order:
        other = bool(batch) and layers[n] != layers[batch[-1]]
        if len(batch) == most or (other and len(batch) >= most * SMALL):
            yield batch, layers[batch[0]]
            batch = []
        batch.append(n)
    if batch:
        yield batch, layers[batch[0]]


def by_position(starts: Sequence[Start], length: int, depth: int, most: int) -> Iterator[tuple[list[int], Start]]:
    """Yield the numbers of sets that run together from their first token on, at most so many, and where they begin.

    Sets stand in the order of their layers, and within a layer of their tokens; that order is cut where all passes
    together compute least.
    """
    order = sorted(range(len(starts)), key=lambda n: (starts[n], n))
    # least[n]: what the first n sets of the order cost; cut[n]: where the last batch of them begins
    least, cut = [0.0], [0]
    for stop in range(1, len(order) + 1):
        best, at, first = math.inf, stop - 1, length
        for start in range(stop - 1, max(-1, stop - 1 - most), -1):
            _, layer, token = starts[order[start]]
            first = min(first, token)
            one = ((stop - start) * (length - first) + PASS_TOKENS) * (depth - min(layer, depth) + 1)
            if least[start] + one < best:
                best, at = least[start] + one, start
        least.append(best)
        cut.append(at)
    ends = [len(order)]
    while ends[-1]:
        ends.append(cut[ends[-1]])
    for stop, start in zip(ends[-2::-1], ends[:0:-1], strict=True):
        numbers = order[start:stop]
        stack, layer, _ = starts[numbers[0]]
        yield numbers, (stack, layer, min(starts[n][2] for n in numbers))
