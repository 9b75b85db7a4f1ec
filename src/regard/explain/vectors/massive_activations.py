"""Massive activations: tokens whose states are many times as long as the others', whatever they mean."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.trace.trace import Trace

# From how many times the median length, in any layer, a token's state is massive. Such activations (Sun et al. 2024,
# "Massive Activations in Large Language Models") stand on few tokens, most often the first, and are the same few
# components whatever the token: on a plane they push all others into a corner. Measured: SmolLM2 has 160 times the
# median on the first token of a text and at most 3 elsewhere, MiniLM 1.6 at most.
MASSIVE = 10.0


def own(trace: Trace) -> list[int]:
    """The tokens of a text that are not special."""
    return [n for n, token in enumerate(trace.tokens) if not token.special]


def state_lengths_over_median(traces: Sequence[Trace], others: Sequence[Trace] = ()) -> dict[int, Float[Tensor, " L"]]:
    """How many times the median length a token's state is, in the layer where that is most; by the id() of its trace.

    The median of a layer is that of all traces' tokens which are not special. others: measured by it as well.
    """
    found = {id(trace): torch.zeros(len(trace.tokens), dtype=torch.float64) for trace in (*traces, *others)}
    for n in range(len(traces[0].hidden_states)):
        lengths = {id(trace): trace.hidden_states[n].double().norm(dim=1).cpu() for trace in (*traces, *others)}
        median = torch.cat([lengths[id(trace)][own(trace)] for trace in traces]).median()
        for each, length in lengths.items():
            found[each] = torch.maximum(found[each], length / median.clamp_min(1e-30))
    return found
