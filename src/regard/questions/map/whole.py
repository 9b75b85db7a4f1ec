"""Summarise a layer's whole attention matrix: the largest receivers, the largest distant weights, a small picture.

Everything is exact, from one pass over the matrix; the matrix itself never exists. Tokens, layers and heads count
from 0.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.head_map import one_head
from regard.attention.map_statistics import Progress, cell_sizes, picture_cells_of_run
from regard.checks import from_zero
from regard.display.answer import Read
from regard.errors import RegardError
from regard.explain.matrices import Band, Distant, OffsetMeans, offset_means, whole_map
from regard.explain.weights.attended import check_head, check_layer
from regard.explain.weights.sinks import sinks, sinks_of
from regard.explain.weights.specific_weights import most_specific_weight, specific_weights, text_choice
from regard.questions.map.answer import AROUND, HeadFigures, Matrix, Pair, Place, Receiver
from regard.questions.map.panels import ATTENDED
from regard.text.tokens import Token
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace

LISTED = 20  # largest weights of each query that the pass lists: all others are below 0.05
CELLS = 256  # rows and columns of the picture at most


@dataclass
class Sums:
    """Figures of H heads over L tokens, for `matrix_of`.

    largest: the largest weight from another token in any head, exact from 0.05 on. picture, band: mean of heads. sinks:
    the tokens that are attention sinks. The others are of H: means over queries.
    """

    received: Float[Tensor, "H L"]
    largest: Float[Tensor, " L"]
    picture: Float[Tensor, "P Q"] | None
    band: Band | None
    entropy: Float[Tensor, " H"]
    distance: Float[Tensor, " H"]
    special: Float[Tensor, " H"]
    sink: Float[Tensor, " H"]
    sink_tokens: Float[Tensor, " H"]
    near: OffsetMeans
    pairs: Distant
    sinks: Collection[int]


def matrix(
    trace: Trace, layer: int, head: int | None = None, *, top: int = 10, far: int = 64, progress: Progress | None = None
) -> Matrix:
    """Compute the matrix of one layer of a text that was read as a whole.

    All heads of the layer decide which tokens are sinks.
    """
    layer, head = check_layer(trace, layer), None if head is None else check_head(trace, head)
    weights = heads_shown(trace.attention[layer], head)
    special = torch.tensor([token.special for token in trace.tokens], device=weights.device)
    length = weights.shape[1]
    if weights.shape[2] != len(trace.tokens):
        raise RegardError(f"layer {layer} has keys that are no tokens of the text: it has no matrix of tokens")
    figures = weights.statistics(LISTED, (CELLS, CELLS), progress)
    values, keys, received, picture = figures.values, figures.keys, figures.received, figures.pooled
    entropy, distance, sink = figures.entropy, figures.distance, figures.sink_share
    assert values is not None and keys is not None and received is not None and picture is not None  # noqa: PT018
    assert entropy is not None and distance is not None  # noqa: PT018
    queries = torch.arange(length, device=keys.device)[:, None]
    others = values.where((keys != queries) & (keys >= 0), 0).flatten().float()
    largest = others.new_zeros(length).scatter_reduce(0, keys.clamp(min=0).flatten(), others, "amax")
    known = [received] if head is None else None
    sinks = {sink.token for sink in sinks_of([trace.attention[layer]], trace.tokens, received=known)}
    sunk = torch.zeros_like(special)
    sunk[sorted(sinks)] = True
    sums = Sums(
        received=received.double(), largest=largest.cpu(),
        picture=picture.mean(0).double(), band=None, entropy=entropy.double().mean(-1),
        distance=distance.double().mean(-1), special=received[:, special].double().sum(-1) / length,
        sink=torch.zeros(len(received), dtype=torch.float64) if sink is None else sink.double().mean(-1),
        sink_tokens=received[:, sunk].double().sum(-1) / length, near=offset_means(weights),
        pairs=whole_map(weights, values, keys, special | sunk, far, top), sinks=sinks,
    )  # fmt: skip
    return matrix_of(sums, trace.tokens, layer, head, top=top, about=Read.of(trace), traces=[trace])


def heads_shown(weights: AttentionMap, head: int | None) -> AttentionMap:
    """Return the map of the heads that are asked for. Raises RegardError where there is no such head."""
    if head is None:
        return weights
    return one_head(weights, from_zero("head", head, weights.shape[0], "the layer has"))


def matrix_of(
    sums: Sums, tokens: Sequence[Token], layer: int, head: int | None, *, top: int, about: Read, traces: Sequence[Trace]
) -> Matrix:
    """Make the numbers for a person from the sums of a pass."""
    ((text, _),) = about.texts
    received = sums.received.mean(0).cpu()
    best = received.sort(descending=True, stable=True)
    length, columns = len(tokens), min(CELLS, len(tokens))
    column = picture_cells_of_run(slice(0, length), length, columns, torch.device("cpu"))
    across = torch.zeros(columns, dtype=torch.float64).index_add_(0, column, received)
    across /= cell_sizes(length, columns, torch.device("cpu"))
    largest = [weight if weight >= ATTENDED else None for weight in sums.largest.tolist()]
    numbers = range(len(sums.received)) if head is None else [head]
    each = zip(numbers, sums.entropy, sums.distance, sums.special, sums.sink, sums.sink_tokens, strict=True)

    def place(number: int) -> Place:
        token = tokens[number]
        start, end = max(0, token.start - AROUND), token.end + AROUND
        return Place(number, token.text, token.start, token.end, text[start:end])

    return Matrix(
        layer=layer,
        head=head,
        tokens=length,
        characters=len(text),
        near=sums.near,
        heads=[HeadFigures(n, *(float(figure) for figure in figures)) for n, *figures in each],
        receivers=[
            Receiver(place(n), value, largest[n], value / length, tokens[n].special, n in sums.sinks)
            for value, n in zip(best.values[:top].tolist(), best.indices[:top].tolist(), strict=True)
        ],
        unattended=largest.count(None),
        far=sums.pairs.far,
        pairs=[Pair(numbers[h], place(i), place(j), weight, abs(i - j)) for weight, h, i, j in sums.pairs.found()],
        picture=None if sums.picture is None else sums.picture.tolist(),
        band=sums.band,
        received=across.tolist(),
        about=about,
        traces=traces,
    )


def chosen_layer(trace: Trace, layer: int | None, head: int | None) -> tuple[int, str]:
    """Return the given layer, or the most specific layer and why it was chosen. If no weight is specific, the first."""
    if layer is not None:
        return layer, ""
    head = None if head is None else check_head(trace, head)
    apart = [sink.token for sink in sinks(trace)]
    best = most_specific_weight(specific_weights(trace, None, apart, head=head))
    if best is not None:
        return best.layer, text_choice(best.layer, head)
    held = kept_numbers(trace.attention)
    if not held:
        raise RegardError(f"the trace of {trace.status.model} holds no attention")
    return held[0], ""
