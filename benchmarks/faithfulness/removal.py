"""Remove words from a run and measure what becomes of the outcome: the truth that explanations are held against.

A word is removed when no token may look at it, in any layer and head (`regard.explain.removal`): its edges are
left out of the softmax, what is left shares their weight, and the text runs again. Nothing of it can then reach the
place of the outcome.
"""

from collections.abc import Iterable, Sequence

import torch

from benchmarks.faithfulness.cases import Case, group
from regard.capture.interventions.names import STACKS, Ablate, Part, ablate, edge
from regard.explain.causes.ablation_effect import removal

Removed = frozenset[int]  # numbers of the sources that are removed together


def removed_sources(case: Case, removed: Removed) -> list[Ablate]:
    """What is ablated so that nothing of some sources reaches the place of the outcome."""
    found = []
    parts: tuple[Part | None, ...] = (None,) if len(case.trace.sides) == 1 else STACKS
    for side, part in enumerate(parts):
        hidden = tuple(sorted(t for n in removed if case.sources[n].side == side for t in case.sources[n].tokens))
        if hidden:
            found += removal(case.trace, group(hidden), part=part)
    return found


def own_edges(case: Case, source: int) -> list[Ablate]:
    """What `regard why` ablates: the edges from the place of the outcome alone to a source."""
    of = case.sources[source]
    part = None if len(case.trace.sides) == 1 else "cross" if of.side == 0 else "decoder"
    return [ablate(edge(case.word, group(of.tokens), part=part))]


def measured(case: Case, sets: Sequence[Sequence[Ablate]]) -> list[tuple[float, float]]:
    """Of each set of ablations the outcome under it, and how far the place's vector moved: 1 - cosine."""
    before = case.own.last_hidden_state[list(case.place)]
    states = before.repeat(len(sets), 1, 1)
    for number, trace in case.model.ablated(sets=sets, logits=False, **case.given):
        states[number] = trace.sides[-1].last_hidden_state[list(case.place)]
    with torch.no_grad():
        moved = 1 - torch.cosine_similarity(states.double().mean(1), before.double().mean(0)[None], dim=1)
        return list(zip(case.read(states).tolist(), moved.tolist(), strict=True))


def without(case: Case, removals: Iterable[Removed]) -> dict[Removed, tuple[float, float]]:
    """The outcome and the movement under each removal; each is measured once."""
    once = list(dict.fromkeys(removals))
    return dict(zip(once, measured(case, [removed_sources(case, each) for each in once]), strict=True))
