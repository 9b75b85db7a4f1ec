"""Which words of the source a translation's words come from, as an encoder-decoder's cross-attention has it.

Row i of a decoder reads target token i and writes token i + 1, so a target token has two rows: the one before it, that
writes it, and its own, that reads it. In a trained model one layer's rows look at the source of what they write
(Bahdanau et al. 2015) and another's, lower down, at the source of what they have just read (Chen et al. 2020, "Accurate
Word Alignment Induction from Neural Machine Translation"). Which layers these are is found without a gold standard: the
two are independent views of one alignment, so the two layers are taken whose views agree most.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.weights.attended import Attended, attended
from regard.explain.weights.sinks import Sink, cross_sinks
from regard.explain.wording import number
from regard.text.words import Word
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True)
class Aligned:
    """One target token and the source tokens it comes from: by the row that writes it (None for the first token, which
    nothing writes) in one layer, and by the row that reads it in another."""

    token: int
    text: str
    written: Attended | None
    read: Attended


@dataclass(frozen=True)
class Alignment:
    """The alignment of one text and its target.

    written_layer, read_layer: the layers shown. agreement: how far these two views agree, at most 1, 0 for not at all.
    head: the one head whose weights these are, None for the mean of heads. tokens: one entry a target token.
    `weights[n][i][j]`: what row i, which reads target token i and writes token i + 1, gives source token j in layer
    layers[n], of all layers that the trace holds. sinks: source tokens that are attention sinks of the cross-attention.
    """

    text: int
    written_layer: int
    read_layer: int
    agreement: float
    head: int | None
    tokens: list[Aligned]
    layers: list[int]
    weights: list[list[list[float]]]
    sinks: list[Sink]


@dataclass(frozen=True)
class Across:
    """A word and the other side of cross-attention, one entry a layer: mean of heads, or the head that is asked for.

    Of a target word: what it gives each source token, in the rows that write it (none where it is the first token) and
    in those that read it. Of a source word: what each target token gives it, when it is written and when it is read;
    these do not add up to 1.
    """

    occurrence: str
    written: list[Attended]
    read: list[Attended]


def align(
    pair: PairTrace, text: int = 0, *, layers: tuple[int, int] | None = None, head: int | None = None, top: int = 5
) -> Alignment:
    """Compute the alignment of a source and its target. text: the pair's number among several.

    layers: whose rows to show (as tokens are written, as they are read); without it, the two that `choose` finds for
    this pair. head: of this head's weights instead of the mean of heads. top: how many tokens a row names. Layers and
    heads that do not exist are for the caller to refuse.
    """
    numbers, weights = list(kept_numbers(pair.decoder.cross)), cross_attention_rows(pair, head)
    written, read = choose([pair], head) if layers is None else layers
    for layer in (written, read):
        pair.decoder.cross[layer]  # says so itself where the trace does not hold it
    above, below = numbers.index(written), numbers.index(read)
    agreement = float(_table(pair, head)[above, below])
    source, target, apart = pair.encoder.tokens, pair.decoder.tokens, cross_sinks(pair)
    numbered = [sink.token for sink in apart]
    # The row before a token writes it: nothing writes the first, and nothing is written by the last.
    writes = [None, *attended(weights[above, :-1], source, written, head, top, numbered)]
    reads = attended(weights[below], source, read, head, top, numbered)
    tokens = [Aligned(n, token.text, writes[n], reads[n]) for n, token in enumerate(target)]
    return Alignment(text, written, read, agreement, head, tokens, numbers, weights.tolist(), apart)


def choose(pairs: Sequence[PairTrace], head: int | None = None) -> tuple[int, int]:
    """The layer whose rows tell best where a token that is written comes from, and the one for tokens that are read.

    They are the two that agree most, over all pairs, each counting by its tokens; the first of several alike. The
    traces hold the same layers.
    """
    total = sum(_table(pair, head) * len(pair.decoder.tokens) for pair in pairs)
    assert isinstance(total, Tensor)
    best = int(total.argmax())
    numbers = kept_numbers(pairs[0].decoder.cross)
    return numbers[best // len(total)], numbers[best % len(total)]


def _table(pair: PairTrace, head: int | None) -> Float[Tensor, "N N"]:
    """The agreement of every two layers: of tokens that are not special, and what they give such that are no sinks."""
    own = [n for n, token in enumerate(pair.decoder.tokens) if n > 0 and not token.special]
    sinks = {sink.token for sink in cross_sinks(pair)}
    words = [n for n, token in enumerate(pair.encoder.tokens) if not token.special and n not in sinks]
    return agreements(cross_attention_rows(pair, head)[:, :, words], own)


def cross_attention_rows(pair: PairTrace, head: int | None) -> Float[Tensor, "N T S"]:
    """Cross-attention of every layer that the trace holds, the mean of heads or one head."""
    maps = [pair.decoder.cross[n] for n in kept_numbers(pair.decoder.cross)]
    if not maps:
        raise RegardError(f"the trace of {pair.status.model} holds no cross-attention")
    return torch.stack([w.dense().mean(0) if head is None else w[head] for w in maps])


def agreements(weights: Float[Tensor, "N T S"], own: Sequence[int]) -> Float[Tensor, "N N"]:
    """How far the rows that write a token, of one layer, agree with those that read it, of another: [writing, reading].

    The mean cosine of a target token's two rows, over the tokens `own` (none of them the first), less that of rows of
    different tokens: layers whose rows all look at one place agree on nothing.
    """
    count = len(own)
    if count < 2:
        return weights.new_zeros(len(weights), len(weights))
    chosen = list(own)
    rows = weights / weights.norm(dim=-1, keepdim=True).clamp_min(1e-30)
    written, read = rows[:, [n - 1 for n in chosen]], rows[:, chosen]  # (N, t, S) each
    same = torch.einsum("ats,bts->ab", written, read)
    every = torch.einsum("as,bs->ab", written.sum(1), read.sum(1))
    return same / count - (every - same) / (count * (count - 1))


def from_target(pair: PairTrace, word: Word, label: str, *, head: int | None = None, top: int = 5) -> Across:
    """Find what a word of the target gives each source token, layer by layer; of several tokens the mean."""
    weights, tokens = cross_attention_rows(pair, head), list(word.tokens)
    before = [n - 1 for n in tokens if n > 0]
    sinks = {sink.token for sink in cross_sinks(pair)}
    written, read = (
        _each(pair, weights[:, rows].mean(1), pair.encoder, head, top, sinks) if rows else []
        for rows in (before, tokens)
    )
    return Across(label, written, read)


def from_source(pair: PairTrace, word: Word, label: str, *, head: int | None = None, top: int = 5) -> Across:
    """Find what each target token gives a source word, layer by layer: the sum over its tokens."""
    read = cross_attention_rows(pair, head)[:, :, list(word.tokens)].sum(2)  # (N, T)
    written = torch.cat([read.new_zeros(len(read), 1), read[:, :-1]], 1)
    own = pair.decoder
    return Across(label, _each(pair, written, own, head, top), _each(pair, read, own, head, top))


def _each(
    pair: PairTrace,
    rows: Float[Tensor, "N S"],
    looked_at: Trace,
    head: int | None,
    top: int,
    sinks: Collection[int] = (),
) -> list[Attended]:
    numbers = kept_numbers(pair.decoder.cross)
    return [attended(row[None], looked_at.tokens, n, head, top, sinks)[0] for n, row in zip(numbers, rows, strict=True)]


def why_these_layers(alignment: Alignment, texts: int = 1) -> str:
    """Say why `choose` took an alignment's layers. texts: over so many."""
    written, read = alignment.written_layer, alignment.read_layer
    best = f"layer {written}, before the model writes a word, and layer {read}, after it, agree most on its source"
    if written == read:
        best = f"layer {written}, before the model writes a word and after it, agrees most on its source"
    together = " over all texts, in this text by" if texts > 1 else ","
    return f"{best}{together} {number(alignment.agreement)} of at most 1"
