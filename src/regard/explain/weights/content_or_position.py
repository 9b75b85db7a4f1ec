"""Tell whether a head follows where a token stands or what it says, by exchanging tokens and looking again.

The tokens of a text's first three quarters change places, all but the very first, at which many heads look whatever it
is. Those of the last quarter stay, and their attention to the tokens that moved is compared, w of the text as it was,
w' of the exchanged one. Token j now stands at m(j):

    position    how alike w[i, j] and w'[i, j] are: the same place, another token
    content     how alike w[i, j] and w'[i, m(j)] are: the same token, another place

Alike is the Bray-Curtis similarity Σ min(a, b) / (Σ (a + b) / 2), from 0 (nothing in common) to 1 (equal). A head that
looks everywhere evenly is alike in both, one that follows both at once in neither. What the keys hold is contextual:
exchanged tokens are not the same vectors, as their neighbours are others.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.checks import check_seed
from regard.errors import RegardError
from regard.explain.weights.attended import held_attention_calls
from regard.explain.weights.head_means import HeadMeans
from regard.explain.wording import refuse_pairs
from regard.text.tokens import check_texts
from regard.trace.layer_subset import CallNumber
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from regard.models.model import Model

MIN_TOKENS = 8  # tokens of a text that are not special
EXCHANGES = 4
NAMES = ("position", "content", "looked")


def content_or_position(
    model: "Model", texts: Sequence[str] | Sequence[Sequence[int]], *, exchanges: int = EXCHANGES, seed: int = 0
) -> HeadMeans:
    """Compare the attention of texts with that of the same texts with tokens exchanged, for every head.

    Gives position, content, and looked: how much the queries looked at the tokens that changed places; where that is
    next to nothing, the other two say little. They are means over texts and exchanges; NaN where a head looks at none
    of these tokens.
    """
    texts = list(check_texts(texts, "content_or_position", ", or a list of ids for each"))
    if not texts or exchanges < 1:
        raise RegardError(f"content_or_position: given {len(texts)} texts, {exchanges} exchanges, needs 1 or more")
    if model.pairs:
        raise RegardError(f"{model.name} is an encoder-decoder: content_or_position is for models with a single stack")
    check_seed(seed)
    random = torch.Generator().manual_seed(seed)
    tables, queried = [], 0
    calls: tuple[CallNumber, ...] = ()
    for text in texts:
        trace = _trace(model, text)
        places = [n for n, token in enumerate(trace.tokens) if not token.special]
        if len(places) < MIN_TOKENS:
            raise RegardError(f"content_or_position: a text has {len(places)} tokens, needs {MIN_TOKENS} or more")
        stay = len(places) // 4
        region, queries = torch.tensor(places[1:-stay]), torch.tensor(places[-stay:])
        ids = torch.tensor([token.id for token in trace.tokens])
        for _ in range(exchanges):
            moved = _cycle_of_exchanged_tokens(len(region), random)
            changed = ids.clone()
            changed[region[moved]] = ids[region]
            calls, found = compare(trace, _trace(model, changed.tolist()), queries, region, moved)
            tables.append(found)
        queried += stay
    table = torch.stack(tables)
    counted = ~table.isnan()
    mean = (table.nan_to_num().sum(0) / torch.where(counted.any(0), counted.sum(0), torch.nan)).numpy()
    return HeadMeans(dict(zip(NAMES, mean, strict=True)), {"queries": queried}, tuple(layer for layer, _ in calls))


def _trace(model: "Model", text: str | Sequence[int]) -> Trace:
    """The trace of a text, or of ids: its attention alone."""
    if isinstance(text, str):
        return model.trace(text, logits=False, attention_outputs=False)
    return model.trace(ids=text, logits=False, attention_outputs=False)


def compare(
    trace: Trace, other: Trace, queries: Int[Tensor, " q"], region: Int[Tensor, " r"], moved: Int[Tensor, " r"]
) -> tuple[tuple[CallNumber, ...], Float[Tensor, "3 layers H"]]:
    """Compare two traces' attention: position, content and looked, for every head of every call.

    queries: the rows that are compared. region: the keys that changed places; moved: token region[n] stands at
    region[moved[n]] in the other.
    """
    refuse_pairs(other)
    calls = held_attention_calls(trace)
    heads = max(trace.attention[call].shape[0] for call in calls)
    first, last = int(queries[0]), int(queries[-1]) + 1
    table = torch.full((3, len(calls), heads), torch.nan, dtype=torch.float64)
    for row, call in enumerate(calls):
        rows = (each.attention[call][:, first:last].cpu().double() for each in (trace, other))
        before, after = (each[:, queries - first][:, :, region] for each in rows)
        own = len(before)
        table[0, row, :own] = _alike(before, after)
        table[1, row, :own] = _alike(before, after[:, :, moved])
        table[2, row, :own] = before.sum(2).mean(1)
    return calls, table


def _alike(one: Float[Tensor, "H q r"], other: Float[Tensor, "H q r"]) -> Float[Tensor, " H"]:
    """The Bray-Curtis similarity of two tables of each head; NaN where both are zero."""
    both = (one + other).sum((1, 2)) / 2
    return torch.minimum(one, other).sum((1, 2)) / torch.where(both > 0, both, torch.nan)


def _cycle_of_exchanged_tokens(count: int, random: torch.Generator) -> Int[Tensor, " n"]:
    """Where each of n tokens goes: all in one random circle, so that none stays."""
    order = torch.randperm(count, generator=random)
    moved = torch.empty_like(order)
    moved[order] = order.roll(-1)
    return moved
