"""Find what is most worth a look in a text: the words that moved most, and the heads with the sharpest links."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.explain.vectors.similarity import cosine
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, wordlike, words
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace

PIECE = 1 << 24  # weights of one head that are looked at together


@dataclass(frozen=True)
class Moved:
    """A word and the cosine between its vector after the last layer and the one that entered layer 0."""

    word: str
    tokens: list[int]
    cosine: float


@dataclass(frozen=True)
class Link:
    """A large weight of one head between tokens of words that are no neighbours."""

    layer: int
    head: int
    query: int
    query_text: str
    key: int
    key_text: str
    weight: float


@dataclass(frozen=True)
class Highlights:
    """moved: the words that moved most, first. links: the largest weights, at most one of each head and pair."""

    moved: list[Moved]
    links: list[Link]


def highlights(trace: Trace, *, head: int | None = None, top: int = 5, sinks: Collection[int] = ()) -> Highlights:
    """Find the words of a text that moved most and its sharpest links between words.

    Special tokens, sinks and punctuation are left out of both, and links between tokens of one word or of neighbouring
    words: many heads look at the token before, whatever it is.
    """
    found = [word for word in words_of(trace.tokens, sinks) if wordlike(spelling(trace.tokens, word))]
    return Highlights(_words_by_movement(trace, found)[:top], _links_in_whole_text(trace, found, head)[:top])


def words_of(tokens: Sequence[Token], without: Collection[int] = ()) -> list[list[int]]:
    """Group the numbers of tokens to words, special tokens and some others aside."""
    own = ([n for n in word if not tokens[n].special and n not in without] for word in words(tokens))
    return [word for word in own if word]


def _words_by_movement(trace: Trace, own: Sequence[Sequence[int]]) -> list[Moved]:
    """The words by how far they moved; none where the trace does not hold the first and last hidden state."""
    last = len(trace.hidden_states) - 1
    held = kept_numbers(trace.hidden_states)
    if not {0, last} <= set(held):
        return []
    first, final = trace.hidden_states[0], trace.hidden_states[last]
    if first.ndim != 2 or first.shape != final.shape:
        return []
    named = {n: spelling(trace.tokens, word) for word in words(trace.tokens) for n in word}  # sinks included
    found = []
    for word in own:
        apart = cosine(first[list(word)].mean(0), final[list(word)].mean(0))
        if apart == apart:
            found.append(Moved(named[word[0]], list(word), apart))
    return sorted(found, key=lambda each: each.cosine)


def strongest_link(
    trace: Trace, layer: int | None = None, head: int | None = None, sinks: Collection[int] = ()
) -> Link | None:
    """Find the largest weight between words that are no neighbours, the first of what `highlights` finds.

    layer, head: whose links, None for those of all. sinks: numbers of tokens that are attention sinks.
    """
    found = [word for word in words_of(trace.tokens, sinks) if wordlike(spelling(trace.tokens, word))]
    return next(iter(_links_in_whole_text(trace, found, head, None if layer is None else [layer])), None)


def _word_number_of_tokens(trace: Trace, words: Sequence[Sequence[int]]) -> Tensor:
    """The number of each token's word, -1 where it is left out."""
    place = torch.full((len(trace.tokens),), -1)
    for number, word in enumerate(words):
        place[list(word)] = number
    return place


def _links_in_whole_text(
    trace: Trace, words: Sequence[Sequence[int]], head: int | None, layers: Sequence[int] | None = None
) -> list[Link]:
    """The largest weight of every head between words that are no neighbours, one for each pair of tokens."""
    place = _word_number_of_tokens(trace, words)
    found: dict[tuple[int, int], Link] = {}
    for layer in kept_numbers(trace.attention) if layers is None else layers:
        weights = trace.attention[layer]
        if weights.shape[1:] != (len(place), len(place)):
            continue
        for number in range(weights.shape[0]) if head is None else (head,):
            weight, query, key = _largest_link_of_head(weights, number, place)
            if weight > (found[query, key].weight if (query, key) in found else 0.0):
                texts = trace.tokens[query].text, trace.tokens[key].text
                found[query, key] = Link(layer, number, query, texts[0], key, texts[1], weight)
    return sorted(found.values(), key=lambda each: (-each.weight, each.layer, each.head))


def _largest_link_of_head(weights: AttentionMap, head: int, place: Tensor) -> tuple[float, int, int]:
    """(weight, query, key) of the largest weight of a head between words that are no neighbours.

    place: the number of each token's word, -1 where it is left out.
    """
    best = (0.0, 0, 0)
    size = len(place)
    step = max(1, PIECE // size)
    for start in range(0, size, step):
        rows: Float[Tensor, "r S"] = weights[head, start : start + step].cpu()
        own = place[start : start + step, None]
        allowed = (own >= 0) & (place >= 0) & ((own - place).abs() > 1)
        largest, at = rows.masked_fill(~allowed, 0.0).flatten().max(0)
        if float(largest) > best[0]:
            best = float(largest), start + int(at) // size, int(at) % size
    return best
