"""Score every cross-attention head of an encoder-decoder by which source token its rows look at.

Row i reads target token i and writes token i + 1. With a(i) the source token that target token i comes from, as `align`
finds it, and w the weights of one head, each score is a mean over the target tokens that are not special:

    written     w[i - 1, a(i)]      the source of the token that is written now     Bahdanau et al. 2015
    read        w[i, a(i)]          the source of the token that was read           Chen et al. 2020
    successor   w[i, a(i) + 1]      the source token after it
    special     Σ w[i, j] over the source's special tokens and sinks j

Where a translation goes word by word, what is written next comes from the successor, so that both are large; where
the order changes they differ.
"""

from collections.abc import Sequence

import numpy as np
import torch

from regard.errors import RegardError
from regard.explain.weights.alignment import align
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.sinks import cross_sinks
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import PairTrace

NAMES = ("written", "read", "successor", "special")


def cross_head_scores(pairs: Sequence[PairTrace]) -> HeadMeans:
    """Score every cross-attention head over one pair of texts or several; each target token counts once."""
    for pair in pairs:
        if not isinstance(pair, PairTrace):
            raise RegardError(f"cross_head_scores: given {type(pair).__name__}, needs the traces of text and target")
    if not pairs:
        raise RegardError("cross_head_scores: given no trace, needs one or more")
    layers = kept_numbers(pairs[0].decoder.cross)
    sums: dict[str, list[torch.Tensor]] = {name: [] for name in NAMES}
    for pair in pairs:
        source = pair.encoder.tokens
        apart = [n for n, token in enumerate(source) if token.special] + [sink.token for sink in cross_sinks(pair)]
        weights = torch.stack([pair.decoder.cross[n].dense() for n in layers]).cpu().double()  # (N, H, T, S)
        for aligned in align(pair).tokens:
            if aligned.written is None or not aligned.written.top or pair.decoder.tokens[aligned.token].special:
                continue
            row, origin = aligned.token, aligned.written.top[0].token
            sums["written"].append(weights[:, :, row - 1, origin])
            sums["read"].append(weights[:, :, row, origin])
            if origin + 1 < len(source) and not source[origin + 1].special:
                sums["successor"].append(weights[:, :, row, origin + 1])
            sums["special"].append(weights[:, :, row, sorted(set(apart))].sum(-1))
    if not sums["written"]:
        raise RegardError("cross_head_scores: no target token has a source that is not special: there is no score")
    empty = np.full(tuple(sums["written"][0].shape), np.nan)
    scores = {name: torch.stack(each).mean(0).numpy() if each else empty for name, each in sums.items()}
    counts = {"queries": len(sums["written"]), "successors": len(sums["successor"])}
    return HeadMeans(scores, counts, layers)
