"""Average every head's scores over traces of texts, a corpus, repeated random tokens, or texts with shuffled tokens.

In repeated random tokens, heads can only follow the repetition. This is the test of Olsson et al. 2022, "In-context
Learning and Induction Heads". In a text w x y … w x y …, an induction head at the second w attends to x, the token
after the first w. `head_scores` defines previous, duplicate and induction.

Shuffled tokens show whether a head follows positions or content. The first three quarters of a text are shuffled,
except for the very first token, to which many heads always attend. The tokens in the last quarter stay. Their attention
to the shuffled tokens is compared: w in the original text, w' in the shuffled text. m(j) is the new position of token
j:

    position    similarity of w[i, j] and w'[i, j]: the same position, another token
    content     similarity of w[i, j] and w'[i, m(j)]: the same token, another position

The similarity is Bray-Curtis, Σ min(a, b) / (Σ (a + b) / 2), from 0 (no overlap) to 1 (equal). A head with even
attention has high values of both, and a head that needs both position and content has low values of both. Keys are
contextual: shuffled tokens have other vectors, because their neighbours differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from regard.checks import check_seed
from regard.errors import RegardError
from regard.explain.weights.alignment import align
from regard.explain.weights.attended import held_attention_calls
from regard.explain.weights.head_scores import NAMES, HeadScores, head_scores
from regard.explain.weights.sinks import cross_sinks
from regard.explain.wording import refuse_pairs
from regard.shown import Row, Tabular
from regard.text.tokens import check_texts
from regard.trace.layers import CallNumber, kept_numbers
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model


COUNTS = ("queries", "nexts", "duplicates", "inductions")
OVER = {  # other scores are means over all queries
    "next": "nexts", "duplicate": "duplicates", "induction": "inductions", "successor": "successors",
}  # fmt: skip
SHARE = "share"  # a fraction of a token's attention, from 0 to 1
ALIKE = "likeness"  # similarity of attention in two texts, from 0 to 1
CROSS_SCORES = ("written", "read", "successor", "special")


@dataclass(frozen=True, eq=False, repr=False)
class HeadMeans(Tabular):
    """The mean scores of every head by name, each (layers, H), with NaN if no query has such a key.

    entropy is in nats, distance in tokens, and all others are fractions from 0 to 1. counts: the number of queries, of
    queries with a next token (nexts), of those with an earlier token of the same id (duplicates), and of those with a
    token after such an earlier token (inductions). For cross-attention, successors is the number of queries whose
    source token has a next token. layers: the layer of each row, empty for 0, 1, 2, …. model, notes: for an embedding
    index, the model that read the texts, and notes on the texts.
    """

    scores: dict[str, Float[np.ndarray, "layers H"]]
    counts: dict[str, int]
    layers: tuple[int, ...] = ()
    model: str = ""
    notes: tuple[str, ...] = ()

    def layer(self, row: int) -> int:
        """Return the layer of a row in the tables of head scores."""
        return self.layers[row] if self.layers else row

    def count(self, name: str) -> int:
        """Return how many tokens a head score averages over."""
        return self.counts.get(OVER.get(name, "queries"), self.counts["queries"])

    def rows(self) -> list[Row]:
        """Return one row per head: layer, head, and every mean score."""
        layers, heads = next(iter(self.scores.values())).shape
        return [
            {"layer": self.layer(row), "head": head}
            | {name: float(values[row, head]) for name, values in self.scores.items()}
            for row in range(layers)
            for head in range(heads)
        ]

    def best(
        self, name: str, count: int = 3, by: Float[np.ndarray, "layers H"] | None = None
    ) -> list[tuple[int, int, float]]:
        """Return the heads with the largest named score, or the largest `by`, as (layer, head, score).

        Heads whose score or `by` is NaN are left out.
        """
        table, ranked = self.scores[name], self.scores[name] if by is None else by
        ranked = np.where(np.isnan(table), np.nan, ranked)
        order = np.argsort(np.where(np.isnan(ranked), np.inf, -ranked), axis=None, kind="stable")[:count]
        cells = [np.unravel_index(n, table.shape) for n in order]
        return [(self.layer(int(a)), int(b), float(table[a, b])) for a, b in cells if not np.isnan(ranked[a, b])]


def mean_scores(texts: Sequence[HeadScores]) -> HeadMeans:
    """Average the head scores of several texts, weighted by the number of queries that each score averages over."""
    if not texts:
        raise RegardError("mean_scores: got no scores, expected those of at least one text")
    calls = texts[0].calls
    if any(text.calls != calls for text in texts):
        raise RegardError("mean_scores: the traces have different layers, expected the same")
    counts = {name: sum(getattr(text, name) for text in texts) for name in COUNTS}
    scores = {}
    for name in NAMES:
        tables = np.stack([text.by_name()[name].numpy() for text in texts])
        weights = np.array([getattr(text, OVER.get(name, "queries")) for text in texts], dtype=np.float64)
        known = ~np.isnan(tables) & (weights > 0)[:, None, None]
        total = (np.where(known, tables, 0) * weights[:, None, None]).sum(0)
        over = (known * weights[:, None, None]).sum(0)
        scores[name] = np.divide(total, over, out=np.full_like(total, np.nan), where=over > 0)
    return HeadMeans(scores, counts, tuple(layer for layer, _ in calls))


@dataclass(frozen=True)
class Meaning:
    """The meaning of a score, and where a head with a high score attends.

    looks_at: the attended tokens in a few words, empty if no overview lists the score. says: the meaning as a sentence.
    unit: "share", "likeness", "nats" or "tokens". mean_of: the tokens that the score averages over, if not all.
    """

    looks_at: str
    says: str
    unit: str = SHARE
    mean_of: str = ""


MEANINGS = {
    "previous": Meaning("the previous token", "How much a token attends to the previous token."),
    "next": Meaning("the next token", "How much a token attends to the next token.",
                    mean_of="followed by another token"),
    "same": Meaning("the token itself", "How much a token attends to itself."),
    "special": Meaning("special tokens", "How much a token attends to special tokens such as [CLS]."),
    "first": Meaning("the first token", "How much a token attends to the first token of the text."),
    "sinks": Meaning("attention sinks",
                     "How much a token attends to attention sinks, which attract attention whatever they mean."),
    "duplicate": Meaning("earlier duplicates", "How much a token attends to its earlier occurrences in the text.",
                         mean_of="that occurred before"),
    "induction": Meaning("tokens after duplicates",
                         "How much a token attends to the token that followed its earlier occurrence.",
                         mean_of="that occurred before and were followed by another token"),
    "entropy": Meaning("many tokens, in nats",
                       "How evenly a token spreads its attention: its entropy in nats, 0 if a single token gets all.",
                       unit="nats"),
    "distance": Meaning("distant tokens", "How far away a token attends: the mean distance in tokens, by weight.",
                        unit="tokens"),
    "position": Meaning("fixed positions",
                        "How much a head attends to the same positions after their tokens were shuffled, from 0 to 1.",
                        unit=ALIKE),
    "content": Meaning("tokens, wherever they are",
                       "How much a head attends to the same tokens after they moved to other positions, from 0 to 1.",
                       unit=ALIKE),
    "looked": Meaning("", "How much a token attends to the shuffled tokens."),
    "written": Meaning("the source of the next token",
                       "How much attention the source of the token that is written next receives."),
    "read": Meaning("the source of the current token",
                    "How much attention the source of the token that was just read receives."),
    "successor": Meaning("the source token after that", "How much attention the source token after that receives.",
                         mean_of="whose source is followed by another token"),
}  # fmt: skip


def is_share(name: str) -> bool:
    """Return whether a score is a fraction from 0 to 1, so that it can share a scale with other fractions."""
    return MEANINGS[name].unit in (SHARE, ALIKE)


def cross_head_scores(pairs: Sequence[PairTrace]) -> HeadMeans:
    """Score every cross-attention head over one or several pairs of texts, with equal weight for each target token.

    Row i reads target token i and writes token i + 1. a(i) is the source token to which `align` aligns target token i,
    and w are the weights of one head. Each score is a mean over the target tokens that aren't special:

        written     w[i - 1, a(i)]      the source of the token that is written now     Bahdanau et al. 2015
        read        w[i, a(i)]          the source of the token that was read           Chen et al. 2020
        successor   w[i, a(i) + 1]      the source token after it
        special     Σ w[i, j] over the source's special tokens and sinks j

    In a word-by-word translation, the successor is written next, so written and successor are both large. They differ
    if the word order changes.
    """
    for pair in pairs:
        if not isinstance(pair, PairTrace):
            raise RegardError(f"cross_head_scores: got {type(pair).__name__}, expected the traces of text and target")
    if not pairs:
        raise RegardError("cross_head_scores: got no trace, expected at least one")
    layers = kept_numbers(pairs[0].decoder.cross)
    sums: dict[str, list[torch.Tensor]] = {name: [] for name in CROSS_SCORES}
    for pair in pairs:
        source = pair.encoder.tokens
        special = [n for n, token in enumerate(source) if token.special] + [sink.token for sink in cross_sinks(pair)]
        weights = torch.stack([pair.decoder.cross[n].dense() for n in layers]).cpu().double()  # (N, H, T, S)
        for aligned in align(pair).tokens:
            if aligned.written is None or not aligned.written.top or pair.decoder.tokens[aligned.token].special:
                continue
            row, origin = aligned.token, aligned.written.top[0].token
            sums["written"].append(weights[:, :, row - 1, origin])
            sums["read"].append(weights[:, :, row, origin])
            if origin + 1 < len(source) and not source[origin + 1].special:
                sums["successor"].append(weights[:, :, row, origin + 1])
            sums["special"].append(weights[:, :, row, sorted(set(special))].sum(-1))
    if not sums["written"]:
        raise RegardError("cross_head_scores: no target token has a source token that isn't special")
    empty = np.full(tuple(sums["written"][0].shape), np.nan)
    scores = {name: torch.stack(rows).mean(0).numpy() if rows else empty for name, rows in sums.items()}
    counts = {"queries": len(sums["written"]), "successors": len(sums["successor"])}
    return HeadMeans(scores, counts, layers)


REPEATED = ("previous", "duplicate", "induction")  # other scores need natural texts
LENGTH, TEXTS = 40, 4
MIN_TOKENS = 8  # fewest tokens of a text, without special tokens, that are worth shuffling
EXCHANGES = 4
EXCHANGED = ("position", "content", "looked")


def random_ids(model: "Model", length: int, repeats: int = 1, *, seed: int = 0) -> list[int]:
    """Draw `length` different random token ids, repeat them `repeats` times, and add the special tokens around them.

    The tokens consist of letters only. For a model without a tokenizer, any id can be drawn.

    model: the model whose vocabulary is used. seed: the seed of the random generator.
    """
    if model.pairs:
        raise RegardError(f"{model.name} is an encoder-decoder: random tokens are for models with a single stack")
    check_seed(seed)
    if length < 2 or repeats < 1:
        raise RegardError(f"random tokens: got {length} tokens {repeats} times, expected 2 or more at least once")
    before, after = special_around(model)
    total = length * repeats + len(before) + len(after)
    if model.limit is not None and total > model.limit:
        raise RegardError(f"random tokens: got {total} with special tokens, {model.name} takes at most {model.limit}")
    pool = _drawable_ids(model)
    if len(pool) < length:
        raise RegardError(f"random tokens: got {length}, but {model.name} has only {len(pool)} to draw from")
    sample = np.random.default_rng(seed).choice(pool, length, replace=False).tolist()
    return [*before, *sample * repeats, *after]


def special_around(model: "Model") -> tuple[list[int], list[int]]:
    """Return the ids of the special tokens that the tokenizer puts before and after a text."""
    if model._tokenizer is None:
        return [], []
    ids = model._tokenizer("a")["input_ids"]
    special = [number in model._tokenizer.all_special_ids for number in ids]
    first = next((n for n, is_special in enumerate(special) if not is_special), len(ids))
    last = next((n for n, is_special in enumerate(special[::-1]) if not is_special), 0)
    return ids[:first], ids[len(ids) - last :]


def _drawable_ids(model: "Model") -> Int[np.ndarray, " V"]:
    """Return the ids that can be drawn: those of tokens that consist of letters, or all without a tokenizer."""
    count = model._session.original.get_input_embeddings().num_embeddings
    if model._tokenizer is None:
        return np.arange(count)
    marks = "\u2581\u0120#"  # mark a word's start or continuation in common vocabularies
    texts = enumerate(model._tokenizer.convert_ids_to_tokens(range(min(count, len(model._tokenizer)))))
    special = set(model._tokenizer.all_special_ids)
    plain = [n for n, text in texts if n not in special and text is not None and text.strip(marks).isalpha()]
    return np.array(plain, dtype=np.int64)


def repeated_tokens(model: "Model", *, length: int = LENGTH, texts: int = TEXTS, seed: int = 0) -> HeadMeans:
    """Score every head of a model on texts that repeat `length` different random tokens once.

    The scores are means over the texts. seed: the seed of the random tokens.
    """
    traces = (_trace_attention(model, random_ids(model, length, 2, seed=seed + n)) for n in range(texts))
    means = mean_scores([head_scores(trace) for trace in traces])
    return HeadMeans({name: means.scores[name] for name in REPEATED}, means.counts, means.layers)


def content_or_position(
    model: "Model", texts: Sequence[str] | Sequence[Sequence[int]], *, exchanges: int = EXCHANGES, seed: int = 0
) -> HeadMeans:
    """Compare every head's attention in texts and in the same texts with shuffled tokens.

    Returns position, content, and looked, which is the attention to the shuffled tokens. If looked is close to 0, the
    other two mean little. All are means over texts and shuffles, NaN for a head that attends to none of these tokens.
    """
    texts = list(check_texts(texts, "content_or_position", ", or a list of ids for each"))
    if not texts or exchanges < 1:
        raise RegardError(f"content_or_position: got {len(texts)} texts, {exchanges} exchanges, expected 1 or more")
    if model.pairs:
        raise RegardError(f"{model.name} is an encoder-decoder: content_or_position is for models with a single stack")
    check_seed(seed)
    random = torch.Generator().manual_seed(seed)
    tables, queried = [], 0
    calls: tuple[CallNumber, ...] = ()
    for text in texts:
        trace = _trace_attention(model, text)
        positions = [n for n, token in enumerate(trace.tokens) if not token.special]
        if len(positions) < MIN_TOKENS:
            raise RegardError(f"content_or_position: a text has {len(positions)} tokens, expected {MIN_TOKENS} or more")
        stay = len(positions) // 4
        region, queries = torch.tensor(positions[1:-stay]), torch.tensor(positions[-stay:])
        ids = torch.tensor([token.id for token in trace.tokens])
        for _ in range(exchanges):
            moved = _draw_cycle(len(region), random)
            changed = ids.clone()
            changed[region[moved]] = ids[region]
            calls, scores = compare(trace, _trace_attention(model, changed.tolist()), queries, region, moved)
            tables.append(scores)
        queried += stay
    table = torch.stack(tables)
    counted = ~table.isnan()
    mean = (table.nan_to_num().sum(0) / torch.where(counted.any(0), counted.sum(0), torch.nan)).numpy()
    return HeadMeans(dict(zip(EXCHANGED, mean, strict=True)), {"queries": queried}, tuple(layer for layer, _ in calls))


def _trace_attention(model: "Model", text: str | Sequence[int]) -> Trace:
    """Trace a text or its ids, and keep only the attention that head scores need."""
    inputs: Any = {"text" if isinstance(text, str) else "ids": text}
    return model.trace(**inputs, logits=False, attention_outputs=False)


def compare(
    trace: Trace, other: Trace, queries: Int[Tensor, " q"], region: Int[Tensor, " r"], moved: Int[Tensor, " r"]
) -> tuple[tuple[CallNumber, ...], Float[Tensor, "3 layers H"]]:
    """Compare two traces' attention: position, content and looked, for every head of every call.

    queries: the rows to compare. region: the keys that are shuffled. moved: in the other trace, token region[n] is at
    region[moved[n]].
    """
    refuse_pairs(other)
    calls = held_attention_calls(trace)
    heads = max(trace.attention[call].shape[0] for call in calls)
    first, last = int(queries[0]), int(queries[-1]) + 1
    table = torch.full((3, len(calls), heads), torch.nan, dtype=torch.float64)
    for row, call in enumerate(calls):
        rows = (side.attention[call][:, first:last].cpu().double() for side in (trace, other))
        before, after = (weights[:, queries - first][:, :, region] for weights in rows)
        count = len(before)
        table[0, row, :count] = _bray_curtis_similarity(before, after)
        table[1, row, :count] = _bray_curtis_similarity(before, after[:, :, moved])
        table[2, row, :count] = before.sum(2).mean(1)
    return calls, table


def _bray_curtis_similarity(one: Float[Tensor, "H q r"], other: Float[Tensor, "H q r"]) -> Float[Tensor, " H"]:
    """Compute the Bray-Curtis similarity of two tables for each head, NaN if both are zero."""
    total = (one + other).sum((1, 2)) / 2
    return torch.minimum(one, other).sum((1, 2)) / torch.where(total > 0, total, torch.nan)


def _draw_cycle(count: int, random: torch.Generator) -> Int[Tensor, " n"]:
    """Draw new positions for n tokens, in a single random cycle, so that every token moves."""
    order = torch.randperm(count, generator=random)
    moved = torch.empty_like(order)
    moved[order] = order.roll(-1)
    return moved
