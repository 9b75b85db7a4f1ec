"""Sort rows of attention weights for display: special tokens and sinks separately, then the largest weights."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.checks import from_zero
from regard.errors import RegardError
from regard.explain.wording import refuse_pairs
from regard.text.tokens import Token
from regard.text.words import spelling, wordlike, words
from regard.trace.labelled_map import special_share
from regard.trace.layers import CallNumber
from regard.trace.trace import Trace

UNKNOWN = ("[UNK]", "<unk>")  # names of the unknown token


@dataclass(frozen=True)
class Share:
    """A token that receives attention, and its weight, a fraction of 1."""

    token: int
    text: str
    weight: float


@dataclass(frozen=True)
class Attended:
    """The attention of one token or word in one layer: of one head, or (head None) the mean of all heads.

    special: the weight on all special tokens. sinks: the weight on each attention sink, in the text's order. top: the
    largest other weights. weights: the weight on every token, None in an overview.
    """

    layer: int
    head: int | None
    special: float
    sinks: list[Share]
    top: list[Share]
    weights: list[float] | None

    @property
    def apart(self) -> float:
        """Return the attention weight on special tokens and attention sinks."""
        return self.special + sum(share.weight for share in self.sinks)


def attended(
    weights: Float[Tensor, "R S"], tokens: Sequence[Token], layer: int, head: int | None, top: int,
    sinks: Collection[int] = (), *, whole: bool = True,
) -> list[Attended]:  # fmt: skip
    """Sort rows of weights into special tokens, sinks, and the `top` largest other weights."""
    numbered, last = sorted(sinks), weights.shape[1] - 1
    allowed = torch.tensor([not token.special for token in tokens], device=weights.device)
    allowed[numbered] = False
    rest, count = weights.masked_fill(~allowed, 0), min(top, weights.shape[1])
    if weights.dtype == torch.float32:
        # The bits of nonnegative floats sort like the floats. Together with the position, counted from the end, they
        # form a single key, in which the first of equal weights is largest. A stable sort takes ten times as long.
        from_end = torch.arange(last, -1, -1, device=weights.device)
        keys = (rest.contiguous().view(torch.int32).long() << 32) | from_end
        positions = last - (keys.topk(count).values & 0xFFFFFFFF)
    else:
        positions = rest.sort(descending=True, stable=True).indices[:, :count]
    columns = rest.gather(1, positions), positions, special_share(weights, tokens), weights[:, numbered]
    results = []  # weights of 0 aren't listed
    rows: list[list[float] | None] = weights.tolist() if whole else [None] * len(weights)
    for row, largest, numbers, on_special, on_sinks in zip(rows, *map(Tensor.tolist, columns), strict=True):
        best = [Share(n, tokens[n].text, value) for value, n in zip(largest, numbers, strict=True) if value > 0]
        sunk = [Share(n, tokens[n].text, value) for n, value in zip(numbered, on_sinks, strict=True) if value > 0]
        results.append(Attended(layer, head, on_special, sunk, best, row))
    return results


def check_heads(trace: Trace, layer: int | None, head: int | None) -> tuple[int | None, int | None]:
    """Check a layer and a head (-1 is the last), and return their numbers from 0."""
    return (None if layer is None else check_layer(trace, layer), None if head is None else check_head(trace, head))


def check_layer(trace: Trace, layer: int) -> int:
    """Check a layer of a trace (-1 is the last), and return its number from 0."""
    layer = from_zero("layer", layer, len(trace.attention), f"{trace.status.model} has")
    trace.attention[layer]  # raises if the trace lacks it
    return layer


def check_head(trace: Trace, head: int) -> int:
    """Check a head of a trace (-1 is the last), and return its number from 0."""
    calls = held_attention_calls(trace)
    return from_zero("head", head, trace.attention[calls[0]].shape[0], f"{trace.status.model} has")


def held_attention_calls(trace: Trace) -> tuple[CallNumber, ...]:
    """Return the attention calls whose maps are in the trace of a single text. Raises RegardError if there are none."""
    refuse_pairs(trace)
    if not (calls := trace.attention.calls):
        raise RegardError(f"the trace of {trace.status.model} has no attention")
    return calls


def maps_between_tokens(trace: Trace) -> list[AttentionMap]:
    """Return the maps (H, L, L) of a trace's calls, after checking that their keys are the text's tokens."""
    maps: list[AttentionMap] = []
    calls, size = held_attention_calls(trace), len(trace.tokens)
    for call in calls:
        maps.append(trace.attention[call])
        if maps[-1].shape[1:] != (size, size):
            raise RegardError(f"layer {call[0]} has keys that aren't tokens of the text, so its heads have no scores")
    return maps


@dataclass(frozen=True)
class WordLink:
    """A word's weight on a token of another word, in one head.

    weight: a fraction of 1. expected: the largest of by distance, by key and an equal share, as in `specific_weights`.
    """

    layer: int
    head: int
    token: int
    text: str
    weight: float
    expected: float


def other_words(tokens: Sequence[Token], word: Collection[int], sinks: Collection[int] = ()) -> list[int]:
    """Return the numbers of other words' tokens, without the word's tokens, sinks, special tokens and punctuation.

    Unknown tokens are left out, too. word, sinks: the numbers of the word's tokens, and of attention sinks.
    """
    return [
        number
        for number, token in enumerate(tokens)
        if not token.special and number not in word and number not in sinks
        if wordlike(token.characters) and token.text.strip() not in UNKNOWN
    ]


def keys_of_other_words(
    tokens: Sequence[Token], groups: Sequence[Sequence[int]], sinks: Collection[int] = ()
) -> Bool[Tensor, "g S"]:
    """Mark the tokens of other words, for each of several words passed as token numbers.

    Words with the same spelling are left out, because many heads attend to repetitions. So are other pieces of the
    word.
    """
    spans = words(tokens)
    names = [spelling(tokens, word).casefold() for word in spans]
    numbers = {name: n for n, name in enumerate(names)}
    word_of = torch.tensor([n for n, word in enumerate(spans) for _ in word])
    spelling_ids = torch.tensor([numbers[names[n]] for n in word_of.tolist()])
    keys = torch.zeros(len(groups), len(tokens), dtype=torch.bool)
    keys[:, other_words(tokens, (), sinks)] = True
    for row, group in zip(keys, groups, strict=True):
        name = spelling(tokens, sorted(group)).casefold()
        row &= (spelling_ids != numbers.get(name, -1)) & ~torch.isin(word_of, word_of[list(group)])
    return keys
