"""Compute the numbers of a text that a causal model wrote: probabilities, logit lens, and attention."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.logits import Candidate, LensLayer, Names, candidates, lens_layers
from regard.explain.texts.highlights import Link, unusual_links
from regard.explain.weights.sinks import sinks
from regard.models.readout import Readout
from regard.trace.layers import kept_numbers
from regard.trace.trace import Trace

MakeReadout = Callable[[], Readout]
CANDIDATES = 5  # most likely tokens that are kept for each position
ROWS = 256  # rows of attention summed at a time
MAX_LENS_TOKENS = 64  # written tokens for which the logit lens is computed
MAX_LINKS = 2  # distinctive links per written token


@dataclass(frozen=True)
class WrittenToken:
    """A written token. token, id: its number in the text, and its id in the vocabulary.

    probability: from the model, without temperature. rank: 0 for the likeliest. likeliest: the likeliest tokens at this
    position, best first. layers: the token that each state predicts (logit lens), with the rank and probability of the
    written token, empty if unknown. links: the most distinctive weights, if any, of the row that wrote the token.
    """

    token: int
    id: int
    text: str
    probability: float
    rank: int
    likeliest: list[Candidate]
    layers: list[LensLayer] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)

    @property
    def others(self) -> list[Candidate]:
        """Return the likely tokens that weren't written."""
        return [token for token in self.likeliest if token.id != self.id]

    @property
    def late(self) -> int:
        """Return how many of the last layers, without a gap, predict this token."""
        others = [n for n, layer in enumerate(self.layers) if layer.rank > 1]
        return len(self.layers) - 1 - max(others, default=0)


@dataclass(frozen=True)
class Writing:
    """Written tokens and their attention. given: the number of prompt tokens. ended: as in `Generated`.

    special, sinks, prompt, own: the fractions of attention to special tokens, to attention sinks, to the rest of the
    prompt and to written tokens, as means over layers, heads and the rows that wrote tokens. received: the same mean
    for each token, including special tokens and sinks. sink_tokens: the tokens that are sinks. lens: a note on the
    exactness of the logit lens, or why there is none.
    """

    given: int
    ended: str
    tokens: list[WrittenToken]
    special: float
    sinks: float
    prompt: float
    own: float
    received: list[float]
    sink_tokens: list[int]
    lens: str = ""


def describe_writing(trace: Trace, start: int, ended: str, names: Names, readout: MakeReadout | None = None) -> Writing:
    """Summarize the text that a causal model wrote after the first `start` tokens of a trace.

    ended: the reason for the end, as in `Generated`. names: spells token ids. readout: makes the model's readout for
    the logit lens.
    """
    if trace.logits is None or start < 1:
        raise RegardError("writing: needs a trace with logits, and at least one token before what was written")
    tokens = written_tokens(trace, start, names)
    layers, lens = ([], "") if readout is None else _logit_lens(trace, start, names, readout)
    tokens = [replace(token, layers=token_layers or []) for token, token_layers in zip_longest(tokens, layers)]
    received = _received_attention(trace, start)
    special = torch.tensor([token.special for token in trace.tokens])
    sunk = torch.zeros_like(special)
    sink_tokens = [sink.token for sink in sinks(trace)]
    sunk[sink_tokens] = True
    links = unusual_links(trace, sink_tokens)
    tokens = [replace(token, links=links.get(token.token - 1, [])[:MAX_LINKS]) for token in tokens]
    before = torch.arange(len(trace.tokens)) < start
    parts = (special, sunk & ~special, before & ~sunk & ~special, ~before & ~sunk & ~special)
    to_special, to_sinks, to_prompt, to_new = (float(received[part].sum()) for part in parts)
    return Writing(start, ended, tokens, to_special, to_sinks, to_prompt, to_new, received.tolist(), sink_tokens, lens)


def written_tokens(trace: Trace, start: int, names: Names) -> list[WrittenToken]:
    """List the tokens after the first `start` tokens, with their probabilities and other likely tokens."""
    tokens = []
    for n, logits in enumerate([] if trace.logits is None else trace.logits[start - 1 : -1], start):
        token, chances = trace.tokens[n], logits.double().softmax(-1)
        rank, likeliest = int((logits > logits[token.id]).sum()), candidates(logits, names, CANDIDATES)
        tokens.append(WrittenToken(n, token.id, token.text, float(chances[token.id]), rank, likeliest))
    return tokens


def _logit_lens(trace: Trace, start: int, names: Names, readout: MakeReadout) -> tuple[list[list[LensLayer]], str]:
    """Return each written token's logit-lens layers, and a note on their exactness or on why there are none."""
    assert trace.logits is not None
    numbers = range(start, len(trace.tokens))
    try:
        read = readout()
        entries = [(n - 1, trace.logits[n - 1], trace.tokens[n].id) for n in numbers[:MAX_LENS_TOKENS]]
        states = [lens_layers(read, trace, *entry, names) for entry in entries]
    except RegardError as error:
        return [], f"Logit lens not shown: {error}"
    off = max((off for _, off in states), default=0.0)
    exact = f"Logit lens: the last state's logits are within {off:.1e} of the model's."
    scope = f" It is read for the first {MAX_LENS_TOKENS} written tokens." * (len(numbers) > MAX_LENS_TOKENS)
    return [layers for layers, _ in states], exact + scope


def _received_attention(trace: Trace, prompt_length: int) -> Float[Tensor, " L"]:
    """Return the attention to each token, (L,), as the mean over layers, heads and the rows that wrote tokens."""
    total = torch.zeros(len(trace.tokens), dtype=torch.float64)
    layers = kept_numbers(trace.attention)
    start, stop = prompt_length - 1, len(trace.tokens) - 1
    for layer in layers:
        for first in range(start, stop, ROWS):
            rows = trace.attention[layer][:, first : min(stop, first + ROWS)]  # (H, r, L)
            total += rows[..., : len(total)].double().mean(0).sum(0).cpu()
    return total / max(1, len(layers) * (stop - start))
