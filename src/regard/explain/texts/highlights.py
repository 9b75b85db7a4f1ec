"""Find a text's highlights: its most distinctive links, and the words whose vectors change most."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy
import torch
from jaxtyping import Int
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.attention.given_map import one_head
from regard.attention.map_statistics import Statistics
from regard.explain.weights.specific_weights import (
    DISTINCTIVE,
    DivergenceMap,
    distinctive_pairs,
    divergence_maps,
    divergences,
    runs_of_layers,
    weights_at_hand,
)
from regard.explain.wording import named, numbered, weight_and_head
from regard.text.tokens import Token
from regard.text.words import PRONOUNS, is_content_word, spelling, wordlike, words
from regard.trace.layers import kept_numbers
from regard.trace.trace import Trace

MAX_WEIGHTS = 3_000_000  # of all heads; in texts with more, unusual links aren't searched for
PIECE = 1 << 22  # weights read at once
MAX_SHORT_TEXT = 512  # tokens
CANDIDATES = 64  # largest weights per head whose divergences are compared in a short text
OF_A_LONG_TEXT, LISTED = 8, 16  # the same in a long text, found among this many largest weights per query
OF_A_TOKEN, MIN_WEIGHT = 2, 0.2  # links of one token that are ranked first, and their smallest weight
SHORT, FAR = 48, 8  # in texts of more than SHORT tokens, a link over more than FAR tokens is first
LINKS = "{subject} attends unusually strongly to {links}."
SECOND, DIAGONAL = 0.1, 0.1  # smallest weight of its second link; fraction of a positional head's rows on a diagonal


@dataclass(frozen=True)
class Moved:
    """A word, and the cosine between its state after the last layer and its state at the input of layer 0."""

    word: str
    tokens: list[int]
    cosine: float


@dataclass(frozen=True)
class Link:
    """A head's weight between tokens of two words that aren't neighbours.

    expected: the largest of by distance, by key and an equal share. divergence: how much the weight exceeds it, in
    nats. Both are as in `specific_weights`.
    """

    layer: int
    head: int
    query: int
    query_text: str
    key: int
    key_text: str
    weight: float
    expected: float
    divergence: float


@dataclass(frozen=True)
class Highlights:
    """A text's highlights. moved: words by change, content words first. links: the most distinctive first."""

    moved: list[Moved]
    links: list[Link]


def highlights(trace: Trace, *, head: int | None = None, top: int = 5, sinks: Collection[int] = ()) -> Highlights:
    """Find the words of a text whose vectors changed most, and its most distinctive links between words.

    Both leave out special tokens, sinks and punctuation. Links between neighbouring words, or between words with the
    same spelling, are left out as well, because many heads attend to any previous token or repetition.
    """
    spans = [word for word in words_of(trace.tokens, sinks) if wordlike(spelling(trace.tokens, word))]
    return Highlights(_words_by_movement(trace, spans)[:top], [*islice(_ranked_links(trace, spans, head), top)])


def numbers_of_links(tokens: Sequence[Token], links: Sequence[Link]) -> dict[str, Any]:
    """Return the subject and links of the sentence on a text's first link. Links of other tokens are left out."""
    first = links[0]
    keys = [numbered(tokens, link.key) for link in links]
    if len(tokens) > SHORT and abs(gap := first.key - first.query) > FAR:
        keys[0] = f"{named(tokens, first.key)}, {abs(gap)} tokens {'later' if gap > 0 else 'earlier'}"
    named_links = [f"{key} {weight_and_head(link.weight, link.layer, link.head)}"
                   for key, link in zip(keys, links, strict=True) if link.query == first.query]  # fmt: skip
    return {"subject": numbered(tokens, first.query), "links": named_links}


def standing_out(named: Sequence[Link], maps: Iterable[DivergenceMap]) -> list[tuple[int, int, int, int, float, float]]:
    """Return (query, key, layer, head, weight, expected) of a short text's distinctive links, the named links first.

    named: the links that sentences name; they keep their heads. maps: as for `distinctive_pairs`.
    """
    first = [(link.query, link.key, link.layer, link.head, link.weight, link.expected) for link in named]
    distinctive = [pair[:6] for pair in distinctive_pairs(maps)]
    return list({pair[:2]: pair for pair in [*first, *distinctive, *first]}.values())


def unusual_links(trace: Trace, sinks: Collection[int]) -> dict[int, list[Link]]:
    """Return a text's distinctive links by query token, the most distinctive first. A long text has none."""
    layers, tokens = kept_numbers(trace.attention), trace.tokens
    heads = range(trace.attention[layers[0]].shape[0] if layers else 0)
    links: dict[int, list[Link]] = {}
    if len(layers) * len(heads) * len(tokens) ** 2 > MAX_WEIGHTS:
        return links
    for q, k, layer, h, *numbers in distinctive_pairs(divergence_maps(tokens, trace.attention, sinks, layers, heads)):
        links.setdefault(q, []).append(Link(layer, h, q, tokens[q].text, k, tokens[k].text, *numbers))
    return links


def sweep_long_text(trace: Trace) -> None:
    """Compute, in one pass over each map of a long text, the statistics that its sinks and links need."""
    for layer in kept_numbers(trace.attention) if len(trace.tokens) > MAX_SHORT_TEXT else ():
        trace.attention[layer].keep_statistics(Statistics.only(top=LISTED, received=True))


def words_of(tokens: Sequence[Token], without: Collection[int] = ()) -> list[list[int]]:
    """Return the token numbers of each word, without special tokens and those in `without`."""
    spans = ([n for n in word if not tokens[n].special and n not in without] for word in words(tokens))
    return [word for word in spans if word]


def _words_by_movement(trace: Trace, spans: Sequence[Sequence[int]]) -> list[Moved]:
    """Rank words by how far their vectors moved. Return [] if the trace lacks the first or last hidden state."""
    last = len(trace.hidden_states) - 1
    if not {0, last} <= set(kept_numbers(trace.hidden_states)):
        return []
    first, final = trace.hidden_states[0], trace.hidden_states[last]
    if not spans or first.ndim != 2 or first.shape != final.shape:
        return []
    names = {n: spelling(trace.tokens, word) for word in words(trace.tokens) for n in word}  # including sinks
    states = torch.stack([first, final], 1)
    vectors = torch.stack([states[list(word)].mean(0) for word in spans]).double()  # (words, 2, M)
    cosines = torch.stack([torch.dot(*pair) for pair in vectors]) / vectors.norm(dim=-1).prod(1)
    result = [Moved(names[word[0]], list(word), x) for word, x in zip(spans, cosines.tolist(), strict=True) if x == x]
    return sorted(result, key=lambda moved: (not is_content_word(moved.word), moved.cosine))


def most_distinctive_link(
    trace: Trace, layer: int | None = None, head: int | None = None, sinks: Collection[int] = ()
) -> Link | None:
    """Return the most distinctive link between words, which `highlights` lists first.

    layer, head: search only these; None for all. sinks: numbers of tokens that are attention sinks.
    """
    spans = [word for word in words_of(trace.tokens, sinks) if wordlike(spelling(trace.tokens, word))]
    return next(_ranked_links(trace, spans, head, None if layer is None else [layer]), None)


def _ranked_links(
    trace: Trace, spans: Sequence[Sequence[int]], head: int | None, layers: Sequence[int] | None = None
) -> Iterator[Link]:
    """Yield distinctive links between words that aren't neighbours, ranked, at most one per query token and key word.

    First come links of weight 0.2 or more from content words, pronouns or the last token to content words, at most two
    per query token. The token whose links have the largest sum of divergences comes first. In a longer text, a far link
    precedes all others.
    """
    tokens, maps, size, short = trace.tokens, trace.attention, len(trace.tokens), len(trace.tokens) <= MAX_SHORT_TEXT
    numbers = {n: number for number, word in enumerate(spans) for n in word}
    word_of = torch.tensor([numbers.get(n, -1) for n in range(size)])  # word of each token, -1 for tokens left out
    names = [spelling(tokens, word).casefold() for word in spans]
    spelled = torch.tensor([*map(names.index, names), -1])[word_of]
    is_content = torch.tensor([*map(is_content_word, names), False])[word_of]
    asking = is_content | torch.tensor([*(name in PRONOUNS for name in names), False])[word_of]
    asking[-1:] = True
    usable = [n for n in (kept_numbers(maps) if layers is None else layers) if maps[n].shape[1:] == (size, size)]
    parts = [torch.zeros(7, 0, dtype=torch.float64)]  # layer, head, query, key, and `divergences` of each pair
    for run in runs_of_layers(maps, usable) if short else [[n] for n in usable]:
        weights = weights_at_hand([maps[n] for n in run])
        heads = torch.tensor([(n, h) for n in run for h in range(maps[n].shape[0])])
        selected = torch.arange(len(heads)) if head is None else (heads[:, 1] == head).nonzero()[:, 0]
        of = selected, word_of, spelled
        pairs = _largest_pairs(weights, *of) if short else _largest_pairs_of_long_text(maps[run[0]], *of)
        parts.append(torch.cat([heads[pairs[0]].T, pairs[1:], divergences(weights, pairs)]))
    candidates = torch.cat(parts, 1)
    candidates = candidates[:, candidates[-1] >= DISTINCTIVE]
    at_layer, at_head, query, key, weight, _, beyond = candidates
    order = torch.from_numpy(numpy.lexsort((-key, -query, -weight, at_head, at_layer, -beyond)))
    query, key = query.long(), key.long()
    ranked = order[numpy.sort(numpy.unique((query * size + word_of[key])[order], return_index=True)[1])]

    def links(mask: Tensor) -> Iterator[Link]:
        for *places, weight, expected, beyond in candidates[:, ranked[mask[ranked]]].T.tolist():
            layer, head, q, k = map(int, places)
            yield Link(layer, head, q, tokens[q].text, k, tokens[k].text, weight, expected, beyond)

    of_token: dict[int, list[Link]] = {}
    for link in links(asking[query] & is_content[key] & (weight >= MIN_WEIGHT)):
        if len(of_token.setdefault(link.query, [])) < OF_A_TOKEN:
            of_token[link.query].append(link)
    groups = sorted(of_token.values(), key=lambda links: -sum(link.divergence for link in links))
    content = torch.zeros(size, dtype=torch.bool)
    content[[word[0] for word in spans if is_content[word[0]]]] = True
    remote = links(content[query] & content[key] & ((query - key).abs() > FAR)) if size > SHORT else ()
    first = dict.fromkeys([*_far_links(trace, remote, content, word_of), *(link for links in groups for link in links)])
    yield from first
    yield from (link for link in links(torch.ones_like(query, dtype=torch.bool)) if link not in first)


def _far_links(trace: Trace, links: Iterable[Link], content: Tensor, word_of: Tensor) -> list[Link]:
    """Return the most distinctive link between content words that are far apart, and the second link of its row.

    The link is the largest weight of its row. Heads with diagonals are left out: they follow positions.
    """
    middle = slice(max(0, len(word_of) // 2 - 256), len(word_of) // 2 + 256)
    allowed = (word_of >= 0) & ((word_of[middle, None] - word_of).abs() > 1)
    for link in links:
        layer, head = trace.attention[link.layer], link.head  # a short text's weights are in memory
        weights = layer[head : head + 1].cpu() if len(word_of) <= MAX_SHORT_TEXT else one_head(layer, head)
        row = weights[0, link.query].cpu() * ((word_of >= 0) & (word_of != word_of[link.query]))
        largest = (weights[0, middle].cpu() * allowed).argmax(1)
        if row.argmax() == link.key and float((largest.diff() == 1).double().mean()) <= DIAGONAL:
            key = int((row * (word_of != word_of[link.key])).argmax())
            numbers = divergences(weights, torch.tensor([[0], [link.query], [key]]))[:, 0].tolist()
            second = Link(link.layer, head, link.query, link.query_text, key, trace.tokens[key].text, *numbers)
            named = second.weight >= SECOND and second.divergence >= DISTINCTIVE and content[key]
            return [link, second] if named else [link]
    return []


def _can_be_linked(word: Tensor, spelled: Tensor, queries: Tensor, keys: Tensor) -> Tensor:
    """Return which query-key pairs can be links: their words aren't neighbours, left out or spelled alike.

    word, spelled: the numbers of each token's word and of its spelling, -1 for tokens that are left out.
    """
    query, key = word[queries], word[keys]
    return (query >= 0) & (key >= 0) & ((query - key).abs() > 1) & (spelled[queries] != spelled[keys])


def _largest_pairs(
    weights: AttentionMap | Tensor, heads: Int[Tensor, " H"], word: Tensor, spelled: Tensor
) -> Int[Tensor, "3 n"]:
    """Return (head, query, key) of each head's 64 largest weights between words, except neighbours and repetitions."""
    size, tokens, count = len(word), torch.arange(len(word)), min(CANDIDATES, len(word) ** 2)
    counted = _can_be_linked(word, spelled, tokens[:, None], tokens)
    parts = heads.split(max(1, PIECE // max(1, size**2)))
    largest = [(weights[part].cpu() * counted).flatten(1).topk(count) for part in parts]
    values, at = (torch.cat(tensors).flatten() for tensors in zip(*largest, strict=True))
    return torch.stack([heads.repeat_interleave(count), at // size, at % size])[:, values > 0]


def _largest_pairs_of_long_text(
    weights: AttentionMap, heads: Int[Tensor, " H"], word: Tensor, spelled: Tensor
) -> Int[Tensor, "3 n"]:
    """Return each head's 8 largest pairs, like `_largest_pairs`, but with at most one key per query.

    One pass finds each query's 16 largest weights. If none of them can be a link, the whole row is read, unless its
    smaller weights can't be among the head's 8 largest.
    """
    top = [tensor.cpu() for tensor in weights.top(LISTED)]  # (H, L, 16)
    tokens, count, pairs = torch.arange(len(word)), min(OF_A_LONG_TEXT, len(word)), []
    for head in heads.tolist():
        values, keys = (tensor[head] for tensor in top)
        best, at = (values * ((keys >= 0) & _can_be_linked(word, spelled, tokens[:, None], keys.clamp(min=0)))).max(1)
        key = keys.gather(1, at[:, None])[:, 0]
        threshold = best.topk(count).values[-1]
        unlisted = (best == 0) & (word >= 0) & (keys[:, -1] >= 0) & (values[:, -1] >= threshold)
        for queries in unlisted.nonzero()[:, 0].split(max(1, PIECE // len(word))):
            rows = weights[head, queries].cpu() * _can_be_linked(word, spelled, queries[:, None], tokens)
            best[queries], key[queries] = rows.max(1)
        weight, query = best.topk(count)
        pairs.append(torch.stack([torch.full_like(query, head), query, key[query]])[:, weight > 0])
    return torch.cat(pairs, 1)
