"""Summarise a layer's whole attention matrix: top receivers, largest distant weights, and a small picture.

One pass computes all numbers exactly, without storing the matrix. Tokens, layers and heads are counted from 0.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import one_head
from regard.attention.map_statistics import Progress, cell_sizes, picture_cells_of_run
from regard.capture.options import report_layers_of_pass
from regard.checks import from_zero
from regard.display.answer import Read
from regard.errors import RegardError
from regard.explain.matrices import (
    BLOCK,
    Band,
    BandSums,
    Distant,
    NearSums,
    OffsetMeans,
    matrix_band_of_windows,
    offer_rows,
    offset_means,
    whole_map,
)
from regard.explain.texts.highlights import SHORT, Link, most_distinctive_link
from regard.explain.weights.attended import check_head, check_layer
from regard.explain.weights.sinks import sinks, sinks_of
from regard.explain.weights.specific_weights import most_specific_weight, specific_weights, text_choice
from regard.models.source import Source
from regard.models.states import count_layers
from regard.models.windows import Plan, merge_statuses_of_windows
from regard.questions.map.answer import AROUND, ATTENDED, FarPair, HeadFigures, Matrix, Receiver, TokenInText
from regard.text.tokens import Token
from regard.trace.layers import kept_numbers
from regard.trace.status import Status
from regard.trace.trace import Trace, is_causal

FAR = 64  # default distance in tokens beyond which links are listed, for texts of 512 tokens or more
LISTED = 20  # largest weights listed per query; others are below 0.05, because rows sum to 1
CELLS = 256  # maximum rows and columns of the picture


@dataclass
class MapSums:
    """Sums over the attention of H heads over L tokens, from which `matrix_of` makes a `Matrix`.

    largest: the largest weight from another token in any head, exact if at least 0.05. figures: the fields of
    `HeadFigures`, in order, as means over queries. sinks: the tokens that are attention sinks. picture, band: head
    means.
    """

    received: Float[Tensor, "H L"]
    largest: Float[Tensor, " L"]
    figures: Float[Tensor, "5 H"]
    near: OffsetMeans
    pairs: Distant
    sinks: Collection[int]
    picture: Float[Tensor, "P Q"] | None = None
    band: Band | None = None


def matrix(
    trace: Trace, layer: int, head: int | None = None, *,
    top: int = 10, far: int | None = None, link: Link | None = None, progress: Progress | None = None,
) -> Matrix:  # fmt: skip
    """Summarise the whole attention matrix of one layer, or of one of its heads.

    Attention sinks are determined from all heads of the layer. far: default 64, or an eighth of a shorter text. link:
    the link that the first sentence names. Default: for a text of up to 48 tokens without `far`, the most distinctive
    link of this layer.
    """
    layer, head = check_layer(trace, layer), None if head is None else check_head(trace, head)
    weights = heads_shown(trace.attention[layer], head)
    special = torch.tensor([token.special for token in trace.tokens], device=weights.device)
    length = weights.shape[1]
    if weights.shape[2] != len(trace.tokens):
        raise RegardError(f"layer {layer} has keys that aren't tokens of the text, so it has no token matrix")
    figures = weights.statistics(LISTED, (CELLS, CELLS), progress)
    values, keys, received, picture = figures.values, figures.keys, figures.received, figures.pooled
    entropy, distance, sink = figures.entropy, figures.distance, figures.sink_share
    assert values is not None and keys is not None and received is not None and picture is not None  # noqa: PT018
    assert entropy is not None and distance is not None  # noqa: PT018
    queries = torch.arange(length, device=keys.device)[:, None]
    others = values.where((keys != queries) & (keys >= 0), 0).flatten().float()
    largest = others.new_zeros(length).scatter_reduce(0, keys.clamp(min=0).flatten(), others, "amax")
    all_received = [received] if head is None else None
    sinks = {sink.token for sink in sinks_of([trace.attention[layer]], trace.tokens, received=all_received)}
    is_sink = torch.zeros_like(special)
    is_sink[sorted(sinks)] = True
    means = [
        entropy.double().mean(-1), distance.double().mean(-1), received[:, special].double().sum(-1) / length,
        entropy.new_zeros(len(received)) if sink is None else sink.double().mean(-1),
        received[:, is_sink].double().sum(-1) / length,
    ]  # fmt: skip
    min_distance = default_far(trace.tokens) if far is None else far
    pairs, near = whole_map(weights, values, keys, special | is_sink, min_distance, top), offset_means(weights)
    figures_of_heads = torch.stack([mean.double().cpu() for mean in means])
    sums = MapSums(received.double(), largest.cpu(), figures_of_heads, near, pairs, sinks, picture.mean(0).double())
    if link is None and far is None:
        link = link_of_short_text(trace, layer, head)
    result = matrix_of(sums, trace.tokens, layer, head, top=top, about=Read.of(trace), traces=[trace])
    return replace(result, link=link)


def heads_shown(weights: AttentionMap, head: int | None) -> AttentionMap:
    """Return the attention map of one head, or of all (head None). Raises RegardError for an unknown head."""
    if head is None:
        return weights
    return one_head(weights, from_zero("head", head, weights.shape[0], "the layer has"))


def matrix_of(
    sums: MapSums,
    tokens: Sequence[Token],
    layer: int,
    head: int | None,
    *,
    top: int,
    about: Read,
    traces: Sequence[Trace],
) -> Matrix:
    """Build the `Matrix` from the sums of a pass: top receivers, distant pairs and picture."""
    ((text, _),) = about.texts
    received = sums.received.mean(0).cpu()
    best = received.sort(descending=True, stable=True)
    length, columns = len(tokens), min(CELLS, len(tokens))
    column = picture_cells_of_run(slice(0, length), length, columns, torch.device("cpu"))
    across = torch.zeros(columns, dtype=torch.float64).index_add_(0, column, received)
    across /= cell_sizes(length, columns, torch.device("cpu"))
    largest = [weight if weight >= ATTENDED else None for weight in sums.largest.tolist()]
    numbers = range(len(sums.received)) if head is None else [head]

    def locate(number: int) -> TokenInText:
        token = tokens[number]
        start, end = max(0, token.start - AROUND), token.end + AROUND
        return TokenInText(number, token.text, token.start, token.end, text[start:end])

    return Matrix(
        layer=layer, head=head, tokens=length, characters=len(text), near=sums.near,
        heads=[HeadFigures(n, *figures) for n, figures in zip(numbers, sums.figures.T.tolist(), strict=True)],
        receivers=[Receiver(locate(n), value, largest[n], value / length, tokens[n].special, n in sums.sinks)
                   for value, n in zip(best.values[:top].tolist(), best.indices[:top].tolist(), strict=True)],
        unattended=largest.count(None), far=sums.pairs.far,
        pairs=[FarPair(numbers[h], locate(i), locate(j), weight, abs(i - j)) for weight, h, i, j in sums.pairs.found()],
        picture=None if sums.picture is None else sums.picture.tolist(), band=sums.band, received=across.tolist(),
        about=about, traces=traces,
    )  # fmt: skip


def map_of_source(
    source: Source,
    text: str | None,
    progress: Callable[[float, float], None],
    *,
    layer: int | None,
    head: int | None,
    **options: Any,
) -> Matrix:
    """Compute the `Matrix` of a text, or of the source's saved trace if text is None. options: top and far."""
    advance = _progress_in_parts(progress, 2)  # two parts: the forward pass, and the pass over the matrix
    if text is None:
        trace = source.read_one("map")
    else:
        model = source.load(source.model)
        layer = None if layer is None else from_zero("layer", layer, count_layers(model), f"{model.name} has")
        if source.window is not None:
            assert layer is not None  # `MapQuery` checks that --window has --layer
            plan, windows = model.stream(text, window=source.window, stride=source.stride, layers=[layer])
            return windowed(plan, windows, layer, head, progress=_progress_in_parts(progress, 1), **options)
        with report_layers_of_pass(model._session.original, advance):
            trace = model.trace(text, layers=None if layer is None else [layer], logits=False)
    layer, link, reason = chosen_layer(trace, layer, head, options["far"])
    return replace(matrix(trace, layer, head, link=link, progress=advance, **options), why=reason)


def default_far(tokens: Sequence[Any]) -> int:
    """Return the distance beyond which links of a text are listed: FAR, or an eighth of a shorter text."""
    return max(2, min(FAR, len(tokens) // 8))


def _progress_in_parts(progress: Callable[[float, float], None], of: int) -> Progress:
    """Return a function that adds up finished parts and reports their sum. of: the total."""
    done = 0.0

    def advance(part: int | float) -> None:
        nonlocal done
        done += part
        progress(min(done, of), of)

    return advance


def link_of_short_text(trace: Trace, layer: int | None, head: int | None) -> Link | None:
    """Return the link that `regard see` names first, in a layer and head or in all, or None for a long text."""
    if len(trace.tokens) > SHORT:
        return None
    return most_distinctive_link(trace, layer, head, {sink.token for sink in sinks(trace)})


def chosen_layer(trace: Trace, layer: int | None, head: int | None, far: int | None) -> tuple[int, Link | None, str]:
    """Return the requested layer, or that of the most distinctive link or weights, with the link and the reason.

    The link is None for a requested layer. A trace with a single layer needs no reason.
    """
    if layer is not None:
        return layer, None, ""
    head = None if head is None else check_head(trace, head)
    link = link_of_short_text(trace, None, head) if far is None else None
    kept = kept_numbers(trace.attention)
    if not kept:
        raise RegardError(f"the trace of {trace.status.model} holds no attention")
    if len(kept) == 1:
        return kept[0], link, ""
    if link is not None:
        reason = f"Layer {link.layer} was chosen because it has the most distinctive link between two words."
        return link.layer, link, reason
    sink_tokens = [sink.token for sink in sinks(trace)]
    best = most_specific_weight(specific_weights(trace, None, sink_tokens, head=head))
    return (kept[0], None, "") if best is None else (best.layer, None, text_choice(best.layer, head))


def windowed(
    plan: Plan,
    traces: Iterable[Trace],
    layer: int,
    head: int | None = None,
    *,
    top: int = 10,
    far: int | None = None,
    progress: Progress | None = None,
) -> Matrix:
    """Compute the `Matrix` of one layer from the traces of a plan's windows, with one trace in memory at a time.

    A row has weights only on the tokens of its window, so there is no whole matrix. A band replaces the picture. A text
    that fits a single window has the whole matrix, and its trace. A window's added special tokens count as special and
    are in no cell of the band. Each window has its own sinks.
    """
    text, tokens = plan.encoded.text, plan.encoded.tokens
    if len(plan.spans) == 1:
        (trace,) = traces
        result = matrix(replace(trace, text=text, tokens=tokens), layer, head, top=top, far=far, progress=progress)
        return replace(result, about=_windowed_map_texts(plan, [trace.status]))
    sums: _WindowSums | None = None
    statuses: list[Status] = []
    for number, trace in enumerate(traces):
        if sums is None:
            layer, head = check_layer(trace, layer), None if head is None else check_head(trace, head)
            causal = is_causal(trace)
            heads = heads_shown(trace.attention[layer], head).shape[0]
            sums = _WindowSums(plan, causal, heads, Distant(default_far(tokens) if far is None else far, top))
        if trace.attention[layer].shape[2] != len(trace.tokens):
            raise RegardError(f"layer {layer} has keys that aren't tokens of the text, so it has no token matrix")
        sinks = {sink.token for sink in sinks_of([trace.attention[layer]], trace.tokens)}
        sums.add(number, heads_shown(trace.attention[layer], head), [token.special for token in trace.tokens], sinks)
        statuses.append(trace.status)
        if progress is not None:
            progress(1 / len(plan.spans))
    if sums is None:
        raise RegardError("a text in no windows has no matrix")
    about = _windowed_map_texts(plan, statuses)
    return matrix_of(sums.sums(), tokens, layer, head, top=top, about=about, traces=())


def _windowed_map_texts(plan: Plan, statuses: Sequence[Status]) -> Read:
    """Return the whole text, with the windows' statuses merged into one."""
    status, text = merge_statuses_of_windows(plan, statuses), plan.encoded.text
    return Read(((text, None),), (status,), (("text 1", status, len(plan.encoded.tokens)),))


class _WindowSums:
    """Collects sums over a whole text of L tokens and H heads, window by window."""

    def __init__(self, plan: Plan, causal: bool, heads: int, pairs: Distant) -> None:
        self.plan, self.pairs = plan, pairs
        self.source = torch.tensor(plan.sources(causal))
        length = len(self.source)
        self.received = torch.zeros(heads, length, dtype=torch.float64)
        self.largest = torch.zeros(length)
        self.totals = torch.zeros(5, heads, dtype=torch.float64)  # entropy, distance, special, sink, sink tokens
        self.sinks: set[int] = set()
        spans = []
        for number in range(len(plan.spans)):
            rows, keys = self._rows(number), self._keys(number)
            if len(rows):
                spans.append((int(rows[0]), int(rows[-1]), keys.start, keys.stop - 1))
        self.band = BandSums(length, CELLS, *matrix_band_of_windows(spans, causal))
        self.near = NearSums(heads, length)

    def _rows(self, number: int) -> Int[Tensor, " r"]:
        """Return the numbers (r,), in the whole text, of the tokens whose rows come from a window."""
        return (self.source == number).nonzero()[:, 0]

    def _keys(self, number: int) -> slice:
        """Return the range of the whole text's tokens in a window, including special tokens at the text's ends."""
        start, stop = self.plan.spans[number]
        before = self.plan.before if number == 0 else 0
        after = self.plan.after if number == len(self.plan.spans) - 1 else 0
        return slice(start - before, stop + after)

    def add(self, number: int, weights: AttentionMap, specials: list[bool], sinks: Collection[int]) -> None:
        """Add the rows of one window to the sums. weights: (H, w, w), over the window's w tokens."""
        shift, size = self.plan.shift(number), weights.shape[2]
        row_numbers, keys = self._rows(number) - shift, self._keys(number)  # row numbers in the window
        special = torch.tensor(specials)
        is_sink = torch.zeros_like(special)
        is_sink[sorted(sinks)] = True
        self.sinks |= {sink + shift for sink in sinks}
        shares = None if weights.rule.sinks is None else weights.sink_share.cpu()
        shown = torch.arange(keys.start, keys.stop)
        for rows in row_numbers.split(max(1, BLOCK // size)):
            cells, near = self.band.cells(rows + shift, shown), self.near.cells(rows + shift, shown)
            for head in range(len(weights)):
                part = weights[head, rows.to(weights.device)].cpu()
                of_text = part[:, keys.start - shift : keys.stop - shift]  # without the window's special tokens
                if shares is not None:
                    self.totals[0, head] += torch.special.entr(shares[head, rows]).double().sum()
                    self.totals[3, head] += shares[head, rows].double().sum()
                distances = (part.double() * (rows[:, None] - torch.arange(size)).abs()).sum(-1)
                on_keys = part.double().sum(-1)
                self.totals[0, head] += torch.special.entr(part).double().sum()
                self.totals[1, head] += (distances / torch.where(on_keys == 0, 1.0, on_keys)).sum()
                self.totals[2, head] += part[:, special].double().sum()
                self.totals[4, head] += part[:, is_sink].double().sum()
                self.received[head, keys] += of_text.double().sum(0)
                offer_rows(self.pairs, part, head, rows, special | is_sink, shift)
                self.band.add(0, cells, of_text)
                self.near.add(head, near, of_text)
                part[torch.arange(len(rows)), rows] = 0
                largest = of_text.amax(0)
                self.largest[keys] = torch.maximum(self.largest[keys], largest)

    def sums(self) -> MapSums:
        """Return the sums of all windows, with means over queries."""
        (heads, length), plan, sums = self.received.shape, self.plan, self.band
        band = Band(sums.first, sums.count, sums.means(heads), len(plan.spans), plan.window, plan.stride)
        near, figures = self.near.means(), self.totals / length
        return MapSums(self.received, self.largest, figures, near, self.pairs, self.sinks, band=band)
