"""Random summaries of a followed word: made of random weights, vectors and shares, with no model."""

import random
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from regard import AttentionMap, attend
from regard.explain.causes.layer_updates import Attending, LayerUpdate, UpdateSource
from regard.explain.logits import Candidate, Prediction
from regard.explain.texts.occurrences import Brought, Occurrence, OccurrencePair, WordUpdates
from regard.explain.texts.summary import Summary
from regard.explain.weights.attended import attended, other_words
from regard.explain.weights.sinks import Sink
from regard.explain.weights.specific_weights import word_links
from regard.text.tokens import Token
from regard.trace.status import UNKNOWN
from regard.trace.trace import Trace
from tests.support import in_text

LAYERS, HEADS, WIDTH = 3, 2, 5
OTHERS = ("the", "river", "on", ".", "money", "—", "fish", "##ing", "a")
WORDS = (("bank",), ("ba", "##nk"), ("b", "##an", "##k"))
CAPITAL = ("Bank",)


@dataclass(frozen=True)
class Drawn:
    """A summary, and all weights behind it: `weights[text]` is (layers, heads, L, L)."""

    summary: Summary
    weights: list[Tensor]

    def occurrence(self, label: str | None) -> Occurrence:
        """The occurrence of a label, or of a text's number; the only one for None."""
        seen = self.summary.occurrences
        (own,) = seen if label is None else [each for each in seen if each.label == label.removeprefix("text ")]
        return own

    def tokens(self, own: Occurrence) -> list[Token]:
        return self.summary.tokens[own.text]

    def sinks(self, own: Occurrence) -> set[int]:
        return {sink.token for sink in self.summary.sinks[own.text]}

    def others(self, own: Occurrence) -> list[int]:
        """The tokens of other words; no special ones, no sinks."""
        return [
            n
            for n, token in enumerate(self.tokens(own))
            if not token.special and n not in self.sinks(own) and any(c.isalnum() for c in token.text)
            if n not in own.tokens
        ]


def drawn(seed: int) -> Drawn:
    """A random summary: one or two texts, one to four occurrences, special tokens and sinks or none, layers held."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    word, framed, causal = rng.choice(WORDS), rng.random() < 0.6, rng.random() < 0.4
    held = sorted(rng.sample(range(LAYERS), rng.choice((1, LAYERS, LAYERS))))
    spread = rng.choice((0.3, 2.0, 6.0))
    start = torch.randn(WIDTH).tolist() if rng.random() < 0.3 else None
    apart, drift = rng.choice((0.0, 0.1)), rng.choice((0.0, 0.05, 1.0))  # of where states begin, and layer by layer
    texts, tokens, sinks, weights, seen = [], [], [], [], []
    for text in range(rng.choice((1, 2, 2))):
        own, places = _text(rng, word, rng.choice((1, 1, 2)), framed)
        tokens.append(own)
        texts.append(" ".join(token.text for token in own))
        plain = [n for n, token in enumerate(own) if not token.special]
        sinks.append([Sink(n, own[n].text, 0.5, 0.9) for n in rng.sample(plain, rng.choice((0, 0, 1)))])
        scores = torch.randn(LAYERS, HEADS, len(own), len(own)) * spread
        if causal:
            scores += torch.full((len(own), len(own)), -torch.inf).triu(1)
        weights.append(scores.double().softmax(-1))
        for nth, place in enumerate(places):
            label = f"{text + 1}{'ab'[nth] if len(places) > 1 else ''}"
            numbers = {sink.token for sink in sinks[-1]}
            states = _states(start, apart, drift, held)
            seen.append(_occurrence(label, text, place, own, weights[-1], held, numbers, states))
    summary = Summary(
        word="".join(piece.removeprefix("##") for piece in word),
        top=3,
        layers=list(range(LAYERS)),
        labels=[str(n + 1) for n in range(len(texts))],
        windows=[],
        texts=texts,
        tokens=tokens,
        sinks=sinks,
        occurrences=seen,
        pairs=[_pair(a, b, tokens) for a, b in combinations(seen, 2)],
        references=[],
        highlights=[],
        massive=None,
        layer_updates=[
            _updates(rng, each, tokens[each.text], {sink.token for sink in sinks[each.text]}) for each in seen
        ],
        predictions=[_prediction(rng, each, tokens[each.text]) for each in seen if causal],
        logit_lenses=[],
        statuses=[UNKNOWN],
        reference_statuses=[],
        target=None,
    )
    return Drawn(summary, weights)


def _text(rng: random.Random, word: tuple[str, ...], count: int, framed: bool) -> tuple[list[Token], list[list[int]]]:
    """Tokens that have the word some times, and where."""
    pieces: list[str] = []
    places = []
    for _ in range(count):
        pieces += rng.choices(OTHERS, k=rng.randrange(5))
        own = word if rng.random() < 0.8 else CAPITAL
        places.append(list(range(len(pieces) + framed, len(pieces) + framed + len(own))))
        pieces += own
    pieces += rng.choices(OTHERS, k=rng.randrange(4))
    tokens, at = [], 0
    for n, piece in enumerate(pieces):
        at += not piece.startswith("##")
        end = at + len(piece.removeprefix("##"))
        tokens.append(Token(sum(map(ord, piece)), piece, at, end, n, False))
        at = end
    ends = [Token(0, name, 0, 0, None, True) for name in ("[CLS]", "[SEP]")]
    return in_text([ends[0], *tokens, ends[1]] if framed else tokens), places


def _states(start: list[float] | None, apart: float, drift: float, held: list[int]) -> list[list[float] | None]:
    """States of all layers, those around layers that are held alone; the first is near the one given."""
    states = [torch.randn(WIDTH) if start is None else torch.tensor(start) + apart * torch.randn(WIDTH)]
    for _ in range(LAYERS):
        states.append(states[-1] + drift * torch.randn(WIDTH))
    kept = {n for layer in held for n in (layer, layer + 1)}
    return [state.tolist() if n in kept else None for n, state in enumerate(states)]


def _weights_alone(tokens: list[Token], weights: Tensor) -> Trace:
    """A trace that has the weights of its words, (layers, heads, L, L), and nothing else."""
    none = torch.zeros(1, HEADS, len(tokens), 1, dtype=torch.float64)
    made = [attend(none, none, none, bias=each.log()[None]).weights for each in weights]
    maps = tuple(AttentionMap(each.query, each.key, each.rule, offset=each.offset, ndim=3) for each in made)
    one = torch.ones(len(tokens), 1)
    return Trace(
        " " * (tokens[-1].end + 1), tuple(tokens), None, None, None, None, (one,) * (len(maps) + 1), one, None, maps,
        (None,) * len(maps), UNKNOWN,
    )  # fmt: skip


def _occurrence(label, text, place, tokens, weights, held, sinks, states) -> Occurrence:
    rows = {n: weights[n][:, place].mean(1) for n in held}
    return Occurrence(
        label=label,
        text=text,
        word="".join(tokens[n].text.removeprefix("##") for n in place),
        start=tokens[place[0]].start,
        end=tokens[place[-1]].end,
        tokens=place,
        token_embeddings=None,
        hidden_states=states,
        last_hidden_state=torch.randn(WIDTH).tolist(),
        attends=[attended(row.mean(0, keepdim=True), tokens, n, None, 1, sinks)[0] for n, row in rows.items()],
        heads=[],
        link=word_links(_weights_alone(tokens, weights), [place], sinks, held)[0],
    )


def cosine(a: list[float], b: list[float]) -> float:
    """Of two vectors at length 1, in float64."""
    one, two = (torch.nn.functional.normalize(torch.tensor(each, dtype=torch.float64), dim=0) for each in (a, b))
    return float(one @ two)


def _pair(a: Occurrence, b: Occurrence, tokens: list[list[Token]]) -> OccurrencePair:
    states = [
        None if one is None or two is None else cosine(one, two)
        for one, two in zip(a.hidden_states, b.hidden_states, strict=True)
    ]
    one, two = ([tokens[own.text][n].text for n in own.tokens] for own in (a, b))
    apart = 1.0 if one == two else random.Random(f"{a.label}{b.label}{a.start}").uniform(-1, 1)
    return OccurrencePair(a.label, b.label, one == two, apart, states)


def _updates(rng: random.Random, own: Occurrence, tokens: list[Token], sinks: set[int]) -> WordUpdates:
    if rng.random() < 0.2:
        return WordUpdates(own.label, None, "no exact split")
    size, others = rng.choice((0.01, 0.2)), other_words(tokens, own.tokens, sinks)
    steps, brought = [], []
    for layer in range(LAYERS):
        shares = [rng.gauss(0, size) for _ in tokens]
        top = [UpdateSource(n, tokens[n].text, x, 1.0) for n, x in sorted(enumerate(shares), key=lambda n: -abs(n[1]))]
        total = sum(shares)
        steps.append(LayerUpdate(layer, 1.0, Attending(total, 1.0, total, 0.0, 0.0, top), None, 1 - total, 1.0, 0.0))
        brought += [Brought(layer, n, tokens[n].text, shares[n]) for n in others if shares[n] > 0]
    return WordUpdates(own.label, steps, None, max(brought, key=lambda each: each.share, default=None))


def _prediction(rng: random.Random, own: Occurrence, tokens: list[Token]) -> Prediction:
    chances = sorted((rng.random() for _ in OTHERS), reverse=True)
    said = [
        Candidate(n, word, chance / sum(chances)) for n, (word, chance) in enumerate(zip(OTHERS, chances, strict=True))
    ]
    last = own.tokens[-1]
    return Prediction(own.text, last, tokens[last].text, True, own.label, said)
