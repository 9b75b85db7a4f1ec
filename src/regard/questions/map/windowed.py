"""The attention matrix of a text that was read in windows: every row from the window that its token is taken from."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.map_statistics import Progress
from regard.display.answer import Read
from regard.errors import RegardError
from regard.explain.matrices import BLOCK, Band, BandSums, Distant, OffsetSums, matrix_band_of_windows, offer_rows
from regard.explain.weights.attended import check_head, check_layer
from regard.explain.weights.sinks import sinks_of
from regard.models.windows import Plan, merge_statuses_of_windows
from regard.questions.map.answer import Matrix
from regard.questions.map.whole import CELLS, Sums, heads_shown, matrix, matrix_of
from regard.trace.status import Status
from regard.trace.trace import Trace, is_causal


def windowed(
    plan: Plan,
    traces: Iterable[Trace],
    layer: int,
    head: int | None = None,
    *,
    top: int = 10,
    far: int = 64,
    progress: Progress | None = None,
) -> Matrix:
    """Compute `matrix` of one layer from the traces of a plan's windows, which may come one after another and go again.

    A row has weights on its own window's tokens alone: there is no whole matrix, and in the place of its picture stands
    the band that there is; of a single window, its matrix. The special tokens that a window has and the whole text has
    not count as special, and stand in no cell of the band. Each window has attention sinks of its own.
    """
    text, tokens = plan.encoded.text, plan.encoded.tokens
    if len(plan.spans) == 1:
        (trace,) = traces
        alone = matrix(replace(trace, text=text, tokens=tokens), layer, head, top=top, far=far, progress=progress)
        return replace(alone, about=_windowed_map_texts(plan, [trace.status]), traces=())
    whole: _Whole | None = None
    statuses: list[Status] = []
    for number, trace in enumerate(traces):
        if whole is None:
            layer, head = check_layer(trace, layer), None if head is None else check_head(trace, head)
            causal = is_causal(trace)
            heads = heads_shown(trace.attention[layer], head).shape[0]
            whole = _Whole(plan, causal, heads, Distant(far, top))
        if trace.attention[layer].shape[2] != len(trace.tokens):
            raise RegardError(f"layer {layer} has keys that are no tokens of the text: it has no matrix of tokens")
        sinks = {sink.token for sink in sinks_of([trace.attention[layer]], trace.tokens)}
        whole.add(number, heads_shown(trace.attention[layer], head), [token.special for token in trace.tokens], sinks)
        statuses.append(trace.status)
        if progress is not None:
            progress(1 / len(plan.spans))
    if whole is None:
        raise RegardError("a text in no windows has no matrix")
    about = _windowed_map_texts(plan, statuses)
    return matrix_of(whole.sums(), tokens, layer, head, top=top, about=about, traces=())


def _windowed_map_texts(plan: Plan, statuses: Sequence[Status]) -> Read:
    """The whole text, with one status of all windows."""
    status, text = merge_statuses_of_windows(plan, statuses), plan.encoded.text
    return Read(((text, None),), (status,), (("text 1", status, len(plan.encoded.tokens)),))


class _Whole:
    """The sums over a whole text of L tokens and H heads as its windows come in."""

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
            own, keys = self._own(number), self._keys(number)
            if len(own):
                spans.append((int(own[0]), int(own[-1]), keys.start, keys.stop - 1))
        self.band = BandSums(length, CELLS, *matrix_band_of_windows(spans, causal))
        self.near = OffsetSums(heads, length)

    def _own(self, number: int) -> Int[Tensor, " r"]:
        """The whole text's tokens that are taken from a window."""
        return (self.source == number).nonzero()[:, 0]

    def _keys(self, number: int) -> slice:
        """The whole text's tokens that a window has, special ones around the text too where it begins or ends."""
        start, stop = self.plan.spans[number]
        before = self.plan.before if number == 0 else 0
        after = self.plan.after if number == len(self.plan.spans) - 1 else 0
        return slice(start - before, stop + after)

    def add(self, number: int, weights: AttentionMap, specials: list[bool], sinks: Collection[int]) -> None:
        """Add the rows of the tokens that are taken from one window: weights (H, w, w) over its w tokens."""
        shift, size = self.plan.shift(number), weights.shape[2]
        own, keys = self._own(number) - shift, self._keys(number)  # its own rows, as the window numbers them
        special = torch.tensor(specials)
        sunk = torch.zeros_like(special)
        sunk[sorted(sinks)] = True
        self.sinks |= {sink + shift for sink in sinks}
        shares = None if weights.rule.sinks is None else weights.sink_share.cpu()
        for rows in own.split(max(1, BLOCK // size)):
            spots = self.band.spots(rows + shift, torch.arange(keys.start, keys.stop))
            near = self.near.spots(rows + shift, torch.arange(keys.start, keys.stop))
            for head in range(len(weights)):
                part = weights[head, rows.to(weights.device)].cpu()
                if shares is not None:
                    self.totals[0, head] += torch.special.entr(shares[head, rows]).double().sum()
                    self.totals[3, head] += shares[head, rows].double().sum()
                self.totals[4, head] += part[:, sunk].double().sum()
                self._rows(part, head, rows, keys, special, sunk, shift)
                self.band.add(spots, part[:, keys.start - shift : keys.stop - shift])
                self.near.add(head, near, part[:, keys.start - shift : keys.stop - shift])
                part[torch.arange(len(rows)), rows] = 0
                largest = part[:, keys.start - shift : keys.stop - shift].amax(0)
                self.largest[keys] = torch.maximum(self.largest[keys], largest)

    def _rows(
        self,
        part: Float[Tensor, "r w"],
        head: int,
        rows: Int[Tensor, " r"],
        keys: slice,
        special: Bool[Tensor, " w"],
        sunk: Bool[Tensor, " w"],
        shift: int,
    ) -> None:
        """Add some rows of a head. keys: the whole text's tokens that the window has."""
        apart = (rows[:, None] - torch.arange(part.shape[1])).abs()
        on_keys = part.double().sum(-1)
        self.totals[0, head] += torch.special.entr(part).double().sum()
        self.totals[1, head] += ((part.double() * apart).sum(-1) / torch.where(on_keys == 0, 1.0, on_keys)).sum()
        self.totals[2, head] += part[:, special].double().sum()
        self.received[head, keys] += part[:, keys.start - shift : keys.stop - shift].double().sum(0)
        offer_rows(self.pairs, part, head, rows, special | sunk, shift)

    def sums(self) -> Sums:
        """What came in, as means."""
        heads, length = self.received.shape
        entropy, distance, special, sink, sunk = self.totals / length
        plan, found = self.plan, self.band
        band = Band(found.first, found.count, found.means(heads), len(plan.spans), plan.window, plan.stride)
        near = self.near.means()
        return Sums(
            self.received, self.largest, None, band, entropy, distance, special, sink, sunk, near, self.pairs,
            self.sinks,
        )  # fmt: skip
