"""Test heads on texts made for it: random tokens that are repeated, and tokens that are exchanged.

Repeated random tokens: nothing but the repetition can be followed there. The test of Olsson et al. 2022, "In-context
Learning and Induction Heads": of a text w x y … w x y …, an induction head at the second w looks behind the first, at
x. `head_scores` says what previous, duplicate and induction are.

Exchanged tokens tell whether a head follows where a token stands or what it says. The tokens of a text's first three
quarters change places, all but the very first, at which many heads look whatever it is. Those of the last quarter stay,
and their attention to the tokens that moved is compared, w of the text as it was, w' of the exchanged one. Token j now
stands at m(j):

    position    how alike w[i, j] and w'[i, j] are: the same place, another token
    content     how alike w[i, j] and w'[i, m(j)] are: the same token, another place

Alike is the Bray-Curtis similarity Σ min(a, b) / (Σ (a + b) / 2), from 0 (nothing in common) to 1 (equal). A head that
looks everywhere evenly is alike in both, one that follows both at once in neither. What the keys hold is contextual:
exchanged tokens are not the same vectors, as their neighbours are others.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.checks import check_seed
from regard.errors import RegardError
from regard.explain.weights.attended import held_attention_calls
from regard.explain.weights.head_means import HeadMeans, mean_scores
from regard.explain.weights.head_scores import head_scores
from regard.explain.wording import refuse_pairs
from regard.text.tokens import check_texts
from regard.trace.layer_subset import CallNumber
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from regard.models.model import Model

REPEATED = ("previous", "duplicate", "induction")  # the other scores are of natural texts
LENGTH, TEXTS = 40, 4
MIN_TOKENS = 8  # of a text that are not special, to exchange some
EXCHANGES = 4
EXCHANGED = ("position", "content", "looked")


def random_ids(model: "Model", length: int, repeats: int = 1, *, seed: int = 0) -> list[int]:
    """Draw different tokens at random, `length` of them, `repeats` times the same, between the model's special tokens.

    Tokens are those spelled with letters alone; of a model without a tokenizer any id that it has.

    model: whose vocabulary they are drawn from. seed: of the draw.
    """
    if model.pairs:
        raise RegardError(f"{model.name} is an encoder-decoder: random tokens are for models with a single stack")
    check_seed(seed)
    if length < 2 or repeats < 1:
        raise RegardError(f"random tokens: given {length} tokens, {repeats} times, needs 2 or more, once or more")
    before, after = special_around(model)
    whole = length * repeats + len(before) + len(after)
    if model.limit is not None and whole > model.limit:
        raise RegardError(f"random tokens: given {whole} with special ones, {model.name} takes {model.limit} at most")
    pool = _plain_ids(model)
    if len(pool) < length:
        raise RegardError(f"random tokens: given {length}, {model.name} has {len(pool)} that can be drawn")
    drawn = np.random.default_rng(seed).choice(pool, length, replace=False).tolist()
    return [*before, *drawn * repeats, *after]


def special_around(model: "Model") -> tuple[list[int], list[int]]:
    """Return the ids of the special tokens that the tokenizer puts before and behind a text."""
    if model._tokenizer is None:
        return [], []
    ids = model._tokenizer("a")["input_ids"]
    special = [number in model._tokenizer.all_special_ids for number in ids]
    first = next((n for n, each in enumerate(special) if not each), len(ids))
    last = next((n for n, each in enumerate(special[::-1]) if not each), 0)
    return ids[:first], ids[len(ids) - last :]


def _plain_ids(model: "Model") -> Int[np.ndarray, " V"]:
    """The ids that can be drawn."""
    count = model._session.original.get_input_embeddings().num_embeddings
    if model._tokenizer is None:
        return np.arange(count)
    marks = "\u2581\u0120#"  # what begins a word, or goes on with one, in the vocabularies that are in use
    spelled = enumerate(model._tokenizer.convert_ids_to_tokens(range(min(count, len(model._tokenizer)))))
    special = set(model._tokenizer.all_special_ids)
    plain = [n for n, each in spelled if n not in special and each is not None and each.strip(marks).isalpha()]
    return np.array(plain, dtype=np.int64)


def repeated_tokens(model: "Model", *, length: int = LENGTH, texts: int = TEXTS, seed: int = 0) -> HeadMeans:
    """Score every head of a model on texts of random tokens, each `length` different ones twice over.

    The scores are means over the texts, which seed draws.
    """
    found = []
    for n in range(texts):
        trace = model.trace(ids=random_ids(model, length, 2, seed=seed + n), logits=False, attention_outputs=False)
        found.append(head_scores(trace))
    means = mean_scores(found)
    return HeadMeans({name: means.scores[name] for name in REPEATED}, means.counts, means.layers)


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
    return HeadMeans(dict(zip(EXCHANGED, mean, strict=True)), {"queries": queried}, tuple(layer for layer, _ in calls))


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
