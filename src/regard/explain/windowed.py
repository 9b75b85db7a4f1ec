"""The attention matrix of a text that was read in windows: every row from the window that its token is taken from."""

from collections.abc import Iterable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from regard.attention.map import AttentionMap
from regard.attention.statistics import Progress, cell_sizes, cells
from regard.errors import RegardError
from regard.explain.attended import check_head, check_layer
from regard.explain.distant import BLOCK, Distant, offer_rows
from regard.explain.matrix import CELLS, Matrix, Sums, heads_shown, matrix_of
from regard.models.windows import Plan, looks_ahead, maps_of, merged
from regard.trace import Status, Trace

CPU = torch.device("cpu")


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
    """`matrix` of one layer from the traces of a plan's windows, which may come one after another and go again.

    A row has weights on its own window's tokens alone. The special tokens that a window has and the whole text has not
    count as special, and stand in no cell of the picture.

    Raises:
        RegardError: a layer or head that is not there, or no window at all.
    """
    whole: _Whole | None = None
    statuses: list[Status] = []
    for number, trace in enumerate(traces):
        if whole is None:
            layer, head = check_layer(trace, layer), None if head is None else check_head(trace, head)
            causal = not looks_ahead(maps_of(trace))
            heads = heads_shown(trace.attention[layer], head).shape[0]
            whole = _Whole(plan, plan.sources(causal), heads, Distant(far, top))
        if trace.attention[layer].shape[2] != len(trace.tokens):
            raise RegardError(f"layer {layer} has keys that are no tokens of the text: it has no matrix of tokens")
        whole.add(number, heads_shown(trace.attention[layer], head), [token.special for token in trace.tokens])
        statuses.append(trace.status)
        if progress is not None:
            progress(1 / len(plan.spans))
    if whole is None:
        raise RegardError("a text in no windows has no matrix")
    text, tokens = plan.encoded.text, plan.encoded.tokens
    return matrix_of(whole.sums(), text, tokens, merged(plan, statuses), layer, head, top=top)


class _Whole:
    """The sums over a whole text of L tokens and H heads as its windows come in."""

    def __init__(self, plan: Plan, sources: tuple[int, ...], heads: int, pairs: Distant) -> None:
        self.plan, self.pairs = plan, pairs
        self.source = torch.tensor(sources)
        length = len(sources)
        self.parts = min(CELLS, length)
        self.cell = cells(slice(0, length), length, self.parts, CPU)  # of every token
        self.received = torch.zeros(heads, length, dtype=torch.float64)
        self.picture = torch.zeros(self.parts, self.parts, dtype=torch.float64)
        self.totals = torch.zeros(4, heads, dtype=torch.float64)  # entropy, distance, special, sink

    def add(self, number: int, weights: AttentionMap, specials: list[bool]) -> None:
        """Add the rows of the tokens that are taken from one window: weights (H, w, w) over its w tokens."""
        shift, size = self.plan.shift(number), weights.shape[2]
        own = (self.source == number).nonzero()[:, 0] - shift  # its own rows, as the window numbers them
        special = torch.tensor(specials)
        start, stop = (place - shift for place in self.plan.spans[number])
        first = 0 if number == 0 else start  # special tokens around the first and last window are the whole text's
        last = size if number == len(self.plan.spans) - 1 else stop
        shares = None if weights.rule.sinks is None else weights.sink_share.cpu()
        for head in range(len(weights)):
            for rows in own.split(max(1, BLOCK // size)):
                part = weights[head, rows.to(weights.device)].cpu()
                if shares is not None:
                    self.totals[0, head] += torch.special.entr(shares[head, rows]).double().sum()
                    self.totals[3, head] += shares[head, rows].double().sum()
                self._rows(part, head, rows, slice(first, last), special, shift)

    def _rows(
        self,
        part: Float[Tensor, "r w"],
        head: int,
        rows: Int[Tensor, " r"],
        kept: slice,
        special: Bool[Tensor, " w"],
        shift: int,
    ) -> None:
        """Add some rows of a head. kept: the window's tokens that the whole text has, their numbers shifted there."""
        apart = (rows[:, None] - torch.arange(part.shape[1])).abs()
        on_keys = part.double().sum(-1)
        self.totals[0, head] += torch.special.entr(part).double().sum()
        self.totals[1, head] += ((part.double() * apart).sum(-1) / torch.where(on_keys == 0, 1.0, on_keys)).sum()
        self.totals[2, head] += part[:, special].double().sum()
        inside = part[:, kept].double()
        columns = slice(kept.start + shift, kept.stop + shift)
        self.received[head, columns] += inside.sum(0)
        band = torch.zeros(len(rows), self.parts, dtype=torch.float64).index_add_(1, self.cell[columns], inside)
        self.picture.index_add_(0, self.cell[rows + shift], band)
        offer_rows(self.pairs, part, head, rows, special, shift)

    def sums(self) -> Sums:
        """What came in, as means."""
        heads, length = self.received.shape
        sizes = cell_sizes(length, self.parts, CPU)
        entropy, distance, special, sink = self.totals / length
        picture = self.picture / heads / (sizes[:, None] * sizes)
        return Sums(self.received, picture, entropy, distance, special, sink, self.pairs)
