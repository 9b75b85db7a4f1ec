"""Group the components of a query or key by writer, layer, source or kind, and name each group."""

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.gradients.score_path import Side, SideParts, Writer
from regard.text.quoting import quoted
from regard.text.tokens import Token

By = Literal["token", "writer", "source", "layer", "kind"]
KINDS = {
    "token": "token embedding", "position": "position embedding", "segment": "segment embedding",
    "attention": "attention", "feed-forward": "feed-forward layers", "bias": "biases",
    "final bias": "biases behind the last layer",
}  # fmt: skip


def group_of(writer: Writer, by: By) -> Writer:
    """Return the group of a writer, as a `Writer` in which all fields that the group ignores are None.

    By "layer", a layer's attention, feed-forward and biases form a group, as do the embeddings and the biases before
    the first layer. By "source", heads and layers are merged, and writers other than attention are grouped by kind.
    """
    if by == "token":
        return writer
    if by == "writer":
        return Writer(writer.kind, writer.layer, writer.head, None, writer.side, writer.cross)
    if by == "layer" and writer.kind != "final bias":
        return Writer("token" if writer.layer is None else "attention", writer.layer, side=writer.side)
    if by == "source" and writer.kind == "attention":
        return Writer(writer.kind, source=writer.source, side=writer.side, cross=writer.cross)
    return Writer(writer.kind, side=writer.side)


def writers_by_group(parts: SideParts, by: By) -> tuple[tuple[Writer, ...], Float[Tensor, "P D"]]:
    """Return the groups of the components in order of appearance, and the sum of each group's vectors."""
    groups: dict[Writer, int] = {}
    group_numbers = [groups.setdefault(group_of(writer, by), len(groups)) for writer in parts.writers]
    vectors = parts.vectors.new_zeros(len(groups), parts.vectors.shape[1])
    vectors.index_add_(0, torch.tensor(group_numbers), parts.vectors)
    return tuple(groups), vectors


def largest_writers_and_rest(
    names: list[str], sums: Float[Tensor, "P Q"], count: int
) -> tuple[list[str], Float[Tensor, "p Q"]]:
    """Return the `count` - 1 largest rows in their order, and the sum of all other rows as the last row."""
    if len(names) <= count:
        return names, sums
    order = sums.abs().sum(1).sort(descending=True, stable=True).indices.tolist()
    kept, rest = sorted(order[: count - 1]), order[count - 1 :]
    result = [*(names[n] for n in kept), f"{len(rest):,} others together"]
    return result, torch.cat([sums[kept], sums[rest].sum(0, keepdim=True)])


def named(group: Writer, by: By, tokens: Mapping[Side | None, Sequence[Token]]) -> str:
    """Name a group. tokens: each side's tokens. A source token's number follows it, because words may be repeated."""
    of = "" if group.side is None else f" of the {group.side}"
    if by == "layer" and group.kind != "final bias":
        return ("embeddings" if group.layer is None else f"layer {group.layer}") + of
    if group.kind == "attention":
        cross = "cross-attention" if group.cross else "attention"
        where = cross if group.layer is None else f"layer {group.layer}, {'cross ' * group.cross}head {group.head}"
        if group.source is None:
            return where + of
        read = tokens["encoder" if group.cross else group.side][group.source]
        return f"{where} from {quoted(read.text.strip())} ({group.source}){of}"
    if group.layer is None:
        return (KINDS[group.kind] if by != "writer" or group.kind != "bias" else "biases before layer 0") + of
    return f"layer {group.layer}, {'biases' if group.kind == 'bias' else group.kind}{of}"
