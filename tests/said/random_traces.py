"""Draw traces of random attention, a token a word, the first one special."""

import random

import torch

from regard import AttentionMap, attend
from regard.text.tokens import Token
from regard.trace.status import Status
from regard.trace.trace import Trace
from tests.support import in_text

STATUS = Status("made up", (), "cpu", "float32", None, 0, None)


def trace_of(draw: random.Random, length: int, heads: int, layers: int) -> Trace:
    """A trace without values; some are causal, some sharp. Tokens are called [S], w1, w2 and so on."""
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    causal, scale = draw.random() < 0.3, draw.choice([1.0, 2.0, 3.0])
    maps = []
    for _ in range(layers):
        query, key = (scale * torch.randn(heads, length, 5, generator=generator) for _ in range(2))
        weights = attend(query[None], key[None], key[None], causal=causal).weights
        maps.append(AttentionMap(weights.query, weights.key, weights.rule, offset=weights.offset, ndim=3))
    texts = ["[S]", *(f"w{n}" for n in range(1, length))]
    tokens = tuple(in_text([Token(n, text, 4 * n, 4 * n + len(text), n, n == 0) for n, text in enumerate(texts)]))
    one = torch.ones(length, 2)
    return Trace(
        " ".join(f"{text:<3}" for text in texts), tokens, None, None, None, None, (one,) * (layers + 1), one, None,
        tuple(maps), (None,) * layers, STATUS,
    )  # fmt: skip
