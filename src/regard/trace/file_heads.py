"""Which parts of a map's tensors belong to chosen heads, and to the key and value heads that those share."""

from dataclasses import dataclass

from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.checks import missing


@dataclass(frozen=True)
class Slices:
    """heads: the query heads, groups: the key and value heads of each or of every run of them; None for all."""

    heads: tuple[int, ...] | None = None
    groups: tuple[int, ...] | None = None

    def of(self, name: str, tensor: Tensor) -> tuple[int, tuple[int, ...] | None]:
        """(axis, places) of a tensor of a map by its name: what of it is needed; None for all of it."""
        if name == "key":
            return 1, self.groups
        if name == "sinks":
            return 0, self.heads
        per_head = name == "query" or name == "bias" or name.startswith("mask.dense.")
        return 1, self.heads if per_head and tensor.shape[1] > 1 else None


def slices(weights: AttentionMap, heads: tuple[int, ...] | None, layer: int) -> Slices:
    """The parts that chosen heads of a layer's map need.

    Raises:
        RegardError: the layer has no such head.
    """
    if heads is None:
        return Slices()
    count, groups = weights.query.shape[1], weights.key.shape[1]
    for head in heads:
        if head >= count:
            raise missing("head", head, count, f"layer {layer} has")
    if heads == tuple(range(count)):
        return Slices()
    behind = [head * groups // count for head in heads]
    kept = sorted(set(behind))
    each = len(heads) // len(kept)
    # A map pairs equal runs of query heads with one key head each; where the choice is uneven, every query head gets
    # a key head of its own.
    even = behind == [group for group in kept for _ in range(each)]
    return Slices(heads, tuple(kept if even else behind))
