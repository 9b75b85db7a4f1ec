"""Align the words of a translation with source words, by an encoder-decoder's cross-attention.

Row i of a decoder reads target token i and writes token i + 1. So a target token has two rows: the previous row writes
it, and its own row reads it. In a trained model, the rows of one layer attend to the source of the token that they
write (Bahdanau et al. 2015), and those of a lower layer to the source of the token that they read (Chen et al. 2020,
"Accurate Word Alignment Induction from Neural Machine Translation"). regard finds these layers without a gold standard.
They are independent views of one alignment, so it chooses the two layers whose views agree most.
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
from regard.text.tokens import Token
from regard.text.words import Word, spelling, wordlike, words
from regard.trace.layers import kept_numbers
from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True)
class Aligned:
    """A target token's source tokens. written: those of the row that writes it in one layer (None for the first token).
    read: those of the row that reads it in another layer."""

    token: int
    text: str
    written: Attended | None
    read: Attended


@dataclass(frozen=True)
class Alignment:
    """The alignment of one text and its target.

    written_layer, read_layer: the layers shown. agreement: of these two layers, from 0 (none) to 1. head: the head of
    these weights, None for the mean of heads. tokens: one entry per target token. `weights[n][i][j]`: the weight from
    row i, which reads target token i and writes token i + 1, to source token j in layer layers[n], for all layers of
    the trace. sinks: source tokens that are attention sinks of the cross-attention.
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
class AlignmentLink:
    """A link from a target token to the source token that it attends to most, without special tokens and sinks.

    translation, word: the words of the target and source token. outdone: whether special tokens or a sink receive more.
    """

    target: int
    source: int
    weight: float
    translation: str
    word: str
    outdone: bool


@dataclass(frozen=True)
class Across:
    """A word's cross-attention to or from the other text, one entry per layer, of the requested head or mean of heads.

    For a target word: its attention to each source token, in the rows that write it (none for the first token) and in
    those that read it. For a source word: the attention from each target token, as it is written and as it is read. The
    weights from different target tokens don't sum to 1.
    """

    occurrence: str
    written: list[Attended]
    read: list[Attended]


def align(
    pair: PairTrace, text: int = 0, *, layers: tuple[int, int] | None = None, head: int | None = None, top: int = 5
) -> Alignment:
    """Align the tokens of a target with those of its source. text: the number of the pair.

    layers: the layer whose rows show written tokens, and the layer for read tokens. Default: those that `choose` finds
    for this pair. head: use this head instead of the mean of heads. top: the number of source tokens to list per row.
    The caller checks that layers and heads exist.
    """
    numbers, weights = list(kept_numbers(pair.decoder.cross)), cross_attention_rows(pair, head)
    written, read = choose([pair], head) if layers is None else layers
    for layer in (written, read):
        pair.decoder.cross[layer]  # raises if the trace lacks it
    above, below = numbers.index(written), numbers.index(read)
    agreement = float(_layer_agreements(pair, head)[above, below])
    source, target, sinks = pair.encoder.tokens, pair.decoder.tokens, cross_sinks(pair)
    sink_tokens = [sink.token for sink in sinks]
    # The row before a token writes it. No row writes the first token, and the last row writes no token of the target.
    writes = [None, *attended(weights[above, :-1], source, written, head, top, sink_tokens)]
    reads = attended(weights[below], source, read, head, top, sink_tokens)
    tokens = [Aligned(n, token.text, writes[n], reads[n]) for n, token in enumerate(target)]
    return Alignment(text, written, read, agreement, head, tokens, numbers, weights.tolist(), sinks)


def choose(pairs: Sequence[PairTrace], head: int | None = None) -> tuple[int, int]:
    """Choose the layer whose rows best show the source of written tokens, and the layer for read tokens.

    These two layers agree most, over all pairs, weighted by their tokens. Of equal layers, the first are chosen. All
    traces need the same layers.
    """
    total = sum(_layer_agreements(pair, head) * len(pair.decoder.tokens) for pair in pairs)
    assert isinstance(total, Tensor)
    best = int(total.argmax())
    numbers = kept_numbers(pairs[0].decoder.cross)
    return numbers[best // len(total)], numbers[best % len(total)]


def _layer_agreements(pair: PairTrace, head: int | None) -> Float[Tensor, "N N"]:
    """Compute how much every two layers agree on the word alignment, without special tokens and sinks."""
    targets = [n for n, token in enumerate(pair.decoder.tokens) if n > 0 and not token.special]
    sinks = {sink.token for sink in cross_sinks(pair)}
    words = [n for n, token in enumerate(pair.encoder.tokens) if not token.special and n not in sinks]
    return agreements(cross_attention_rows(pair, head)[:, :, words], targets)


def cross_attention_rows(pair: PairTrace, head: int | None) -> Float[Tensor, "N T S"]:
    """Stack the cross-attention of all layers in the trace, of one head or as the mean of heads."""
    maps = [pair.decoder.cross[n] for n in kept_numbers(pair.decoder.cross)]
    if not maps:
        raise RegardError(f"the trace of {pair.status.model} has no cross-attention")
    return torch.stack([w.dense().mean(0) if head is None else w[head] for w in maps])


def agreements(weights: Float[Tensor, "N T S"], tokens: Sequence[int]) -> Float[Tensor, "N N"]:
    """Compute how much the writing rows of one layer agree with the reading rows of another, [writing, reading].

    Agreement is the mean cosine of a target token's two rows, over `tokens` (without the first token), minus
    the mean cosine of rows of different tokens. Layers whose rows all attend to one position therefore don't agree.
    """
    count = len(tokens)
    if count < 2:
        return weights.new_zeros(len(weights), len(weights))
    chosen = list(tokens)
    rows = weights / weights.norm(dim=-1, keepdim=True).clamp_min(1e-30)
    written, read = rows[:, [n - 1 for n in chosen]], rows[:, chosen]  # (N, t, S) each
    same = torch.einsum("ats,bts->ab", written, read)
    total = torch.einsum("as,bs->ab", written.sum(1), read.sum(1))
    return same / count - (total - same) / (count * (count - 1))


def word_links(alignment: Alignment, source: Sequence[Token], target: Sequence[Token]) -> list[AlignmentLink]:
    """Return the links between words as they are written, the largest weights first. source, target: the tokens."""
    sources, targets = ({n: spelling(side, word) for word in words(side) for n in word} for side in (source, target))
    links = []
    for token in alignment.tokens:
        if token.written is None or not token.written.top or target[token.token].special:
            continue
        row, top = token.written, token.written.top[0]
        outdone = max([row.special, *(sink.weight for sink in row.sinks)]) > top.weight
        if wordlike(targets[token.token]) and wordlike(sources[top.token]):
            names = targets[token.token], sources[top.token]
            links.append(AlignmentLink(token.token, top.token, top.weight, *names, outdone))
    return sorted(links, key=lambda link: -link.weight)


def from_target(pair: PairTrace, word: Word, label: str, *, head: int | None = None, top: int = 5) -> Across:
    """Return a target word's attention to each source token in each layer, as the mean over the word's tokens."""
    weights, tokens = cross_attention_rows(pair, head), list(word.tokens)
    before = [n - 1 for n in tokens if n > 0]
    sinks = {sink.token for sink in cross_sinks(pair)}
    written, read = (
        _attended_rows(pair, weights[:, rows].mean(1), pair.encoder, head, top, sinks) if rows else []
        for rows in (before, tokens)
    )
    return Across(label, written, read)


def from_source(pair: PairTrace, word: Word, label: str, *, head: int | None = None, top: int = 5) -> Across:
    """Return each target token's attention to a source word in each layer, as the sum over the word's tokens."""
    read = cross_attention_rows(pair, head)[:, :, list(word.tokens)].sum(2)  # (N, T)
    written = torch.cat([read.new_zeros(len(read), 1), read[:, :-1]], 1)
    side = pair.decoder
    return Across(label, _attended_rows(pair, written, side, head, top), _attended_rows(pair, read, side, head, top))


def _attended_rows(
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
    """Explain in a sentence why `choose` chose an alignment's layers. texts: the number of texts that it chose for."""
    written, read = alignment.written_layer, alignment.read_layer
    reason = "over all texts" if texts > 1 else f"({number(alignment.agreement)} of 1)"
    if written == read:
        return f"layer {written} is shown because words being written and words read back agree most there {reason}"
    layers = f"layer {written} is shown for words being written and layer {read} for words read back"
    return f"{layers}, because these two layers agree most on the source words {reason}"
