"""How likely a causal model found what it wrote, and what its attention went to while it wrote it."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.errors import RegardError
from regard.explain.logits import Candidate, Names, candidates
from regard.explain.weights.sinks import sinks
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace

CANDIDATES = 4  # tokens that are named at each place
ROWS = 256  # queries whose weights are looked at together


@dataclass(frozen=True)
class WrittenToken:
    """A token that was written. probability: what the model gave it, temperature aside; rank: 0 for the likeliest.

    likeliest: the tokens it found likeliest in that place, first.
    """

    token: int
    text: str
    probability: float
    rank: int
    likeliest: list[Candidate]


@dataclass(frozen=True)
class Writing:
    """What was written after `given` tokens. ended: "end", "stop" or "length", as `Generated` has it.

    special, sinks, prompt, own: the parts of attention, mean over layers, heads and the rows that wrote, that went to
    special tokens, to attention sinks, to the rest of the prompt, to what it had written. received: the same of each
    token; with special tokens and sinks in it. sink_tokens: which tokens are sinks.
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


def writing(trace: Trace, given: int, ended: str, names: Names) -> Writing:
    """Look at what a causal model wrote after the first `given` tokens of a trace.

    ended: why it wrote no more, a key of `ENDED`. names: spells the model's tokens.
    """
    if trace.logits is None or given < 1:
        raise RegardError("writing: needs a trace with logits, and at least one token before what was written")
    found = []
    for number in range(given, len(trace.tokens)):
        logits, token = trace.logits[number - 1].double(), trace.tokens[number]
        chance = float(logits.softmax(-1)[token.id])
        rank = int((logits > logits[token.id]).sum())
        found.append(WrittenToken(number, token.text, chance, rank, candidates(logits, names, CANDIDATES)))
    received = _received(trace, given)
    special = torch.tensor([token.special for token in trace.tokens])
    sunk = torch.zeros_like(special)
    sink_tokens = [sink.token for sink in sinks(trace)]
    sunk[sink_tokens] = True
    before = torch.arange(len(trace.tokens)) < given
    parts = (special, sunk & ~special, before & ~sunk & ~special, ~before & ~sunk & ~special)
    apart, to_sinks, prompt, own = (float(received[part].sum()) for part in parts)
    return Writing(given, ended, found, apart, to_sinks, prompt, own, received.tolist(), sink_tokens)


def _received(trace: Trace, given: int) -> Float[Tensor, " L"]:
    """What each token gets from the rows that wrote, mean of layers, heads and rows; zero where nothing was written."""
    total = torch.zeros(len(trace.tokens), dtype=torch.float64)
    layers = kept_numbers(trace.attention)
    start, stop = given - 1, len(trace.tokens) - 1
    for layer in layers:
        for first in range(start, stop, ROWS):
            rows = trace.attention[layer][:, first : min(stop, first + ROWS)]  # (H, r, L)
            total += rows[..., : len(total)].double().mean(0).sum(0).cpu()
    return total / max(1, len(layers) * (stop - start))
