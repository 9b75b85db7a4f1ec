"""The methods that are compared: each gives every source a number, from one pass or some, without removing anything.

A word's number is the sum over its tokens. Methods without a sign say how much, not which way.
"""

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

import regard
from benchmarks.faithfulness.cases import Case
from regard.capture.interventions.names import Part
from regard.explain.causes.contributions import Contributions, contributions, rollout
from regard.explain.causes.outcomes import number_of
from regard.models.readout import gradient_run
from regard.questions.attribution.gradients import STEPS
from regard.trace.trace import PairTrace

Sides = Sequence[Float[Tensor, " S"]]  # a number for each token, side by side
Explain = Callable[[Case], list[float]]


@dataclass(frozen=True)
class Method:
    """A method. signed: whether its numbers say which way. passes: what it costs, in words."""

    name: str
    explain: Explain
    signed: bool
    passes: str


def by_source(case: Case, sides: Sides) -> list[float]:
    """Add up the tokens of each source."""
    return [float(sides[each.side][list(each.tokens)].sum()) for each in case.sources]


def rows(case: Case) -> list[list[Float[Tensor, "H S"]]]:
    """What the place of the outcome looks at, of each side, layer by layer."""
    maps = [case.own.cross, case.own.attention] if isinstance(case.trace, PairTrace) else [case.own.attention]
    return [[weights[:, list(case.place)].double().mean(1) for weights in layers] for layers in maps]


def last_weight(case: Case) -> list[float]:
    """Attention weight in the last layer, mean over heads."""
    return by_source(case, [layers[-1].mean(0) for layers in rows(case)])


def mean_weight(case: Case) -> list[float]:
    """Attention weight, mean over layers and heads."""
    return by_source(case, [torch.stack([layer.mean(0) for layer in layers]).mean(0) for layers in rows(case)])


def split_outputs(case: Case) -> list[list[Contributions]]:
    """The attention outputs at the place, split by source, of each side and layer."""
    parts: tuple[Part | None, ...] = ("cross", None) if isinstance(case.trace, PairTrace) else (None,)
    layers = range(len(case.own.attention))
    return [[contributions(case.own, case.word, n, part=part) for n in layers] for part in parts]


def contribution_norm(case: Case) -> list[float]:
    """The length of what a source gave (Kobayashi et al. 2020), as a part of the vector's length, mean over layers."""
    lengths = [
        torch.stack([each.sources().norm(dim=1) / each.vector.norm() for each in layers]).mean(0)
        for layers in split_outputs(case)
    ]
    return by_source(case, lengths)


def contribution_share(case: Case) -> list[float]:
    """As `regard why` has it: projections onto the vector, absolute values summed over heads, mean over layers."""
    shares = [torch.stack([each.shares.abs().sum(0) for each in layers]).mean(0) for layers in split_outputs(case)]
    return by_source(case, shares)


def rolled_out(case: Case) -> list[float]:
    """Attention rollout; into a translator's text by the mean cross-attention and the encoder's rollout."""
    found = [rollout(case.own, [case.word])[0]]
    if isinstance(case.trace, PairTrace):
        looked = torch.stack([layer.mean(0) for layer in rows(case)[0]]).mean(0)
        found.insert(0, looked @ rollout(case.trace.encoder))
    return by_source(case, found)


def gradient_times_input(case: Case) -> list[float]:
    """Gradient x input, of the token embeddings."""
    found = regard.attribute_to_tokens(case.model, case.trace, case.outcome, method="gradient x input")
    return by_source(case, found.scores.split(list(found.sides)))


def integrated(case: Case) -> list[float]:
    """Integrated gradients from the vocabulary's mean embedding in 32 steps."""
    found = regard.attribute_to_tokens(case.model, case.trace, case.outcome, steps=STEPS[0])
    return by_source(case, found.scores.split(list(found.sides)))


def patched_states(case: Case) -> list[float]:
    """Attribution patching: all learned embeddings of the other run are the vocabulary's mean.

    What patching a token's hidden state with that run's would do, to the first order; mean over layers, and turned
    round: what is lost.
    """
    done, own = gradient_run(case.model, case.trace)
    mean = case.model.model.get_input_embeddings().weight.detach().mean(0)
    other, _ = gradient_run(case.model, case.trace, lambda _, given: mean.to(given).expand_as(given))
    value, sides = number_of(case.outcome, own), []
    for states, others in zip(done.states, other.states, strict=True):
        slopes = done.gradients(value, list(states))
        moves = [
            ((away.detach() - state.detach()).double() * slope.double())[0].sum(-1)
            for state, away, slope in zip(states, others, slopes, strict=True)
        ]
        sides.append(-torch.stack(moves).mean(0))
    return by_source(case, sides)


def patched_edges(case: Case) -> list[float]:
    """Attribution patching of edges: what leaving a source out of every softmax would do, to the first order.

    Without the keys R a head's output o at query i becomes (o - w_R v_R) / (1 - w_R): the gradient at the output, times
    that change, summed over heads, layers and the queries that are no part of R.
    """
    calls = attention_calls(case)
    seen: dict[int, Tensor] = {}
    modules = [_projection(case.model._session.original, each["block"].weight) for each in calls]
    with ExitStack() as hooks:
        for n, module in enumerate(modules):

            def keep(_module: Any, args: Any, n: int = n) -> None:
                seen[n] = args[0]

            hooks.enter_context(module.register_forward_pre_hook(keep))
        done, own = gradient_run(case.model, case.trace)
    slopes = done.gradients(number_of(case.outcome, own), [seen[n] for n in range(len(calls))])
    scores = torch.zeros(len(case.sources), dtype=torch.float64)
    for call, slope in zip(calls, slopes, strict=True):
        weights, values = call["weights"], call["values"]
        heads, length, _ = weights.shape
        values = values.repeat_interleave(heads // len(values), 0)
        gradient = slope[0].double().view(length, heads, -1).transpose(0, 1)  # (H, L, E)
        given = weights @ values  # (H, L, E)
        for n, source in enumerate(case.sources):
            if source.side != call["side"]:
                continue
            keys = list(source.tokens)
            share = weights[:, :, keys].sum(2, keepdim=True)  # (H, L, 1)
            lost = (weights[:, :, keys] @ values[:, keys] - share * given) / (1 - share).clamp_min(1e-6)
            if call["itself"]:
                lost[:, keys] = 0
            scores[n] += (gradient * lost).sum()
    return scores.tolist()


def attention_calls(case: Case) -> list[dict[str, Any]]:
    """Every attention call of the pass: weights, values, what follows, and whose tokens it looks at."""
    found = []
    for side, trace in enumerate(case.trace.sides):
        kinds: list[tuple[Any, Any, Any, int, bool]] = [
            (trace.attention, trace.values, trace.attention_outputs, side, True)
        ]
        if len(trace.cross):
            kinds.append((trace.cross, trace.cross_values, trace.cross_attention_outputs, 0, False))
        for maps, values, blocks, looked_at, itself in kinds:
            for n in range(len(maps)):
                found.append(
                    {
                        "weights": maps[n].dense().double(),
                        "values": values[n].double(),
                        "block": blocks[n],
                        "side": looked_at,
                        "itself": itself,
                    }
                )
    return found


def direct_attribution(case: Case) -> list[float]:
    """Direct logit attribution: what the heads' looks at a source wrote that the outcome reads, norms held fixed."""
    found = regard.attribution(case.model, case.trace, case.word, case.token, toward=case.toward)
    sides = [torch.zeros(len(trace.tokens), dtype=torch.float64) for trace in case.trace.sides]
    for writer, added in zip(found.parts.writers, found.parts.vectors[:, 0].tolist(), strict=True):
        if writer.kind == "attention" and writer.source is not None:
            side = 0 if writer.cross or writer.side != "decoder" else 1
            sides[side][writer.source] += added
    return by_source(case, sides)


def at_random(case: Case) -> list[float]:
    """Numbers drawn from a seed that is the text's own."""
    drawn = random.Random(case.text)
    return [drawn.random() for _ in case.sources]


def _projection(model: Any, weight: Tensor) -> Any:
    """The module whose weight is W_O."""
    for module in model.modules():
        own = getattr(module, "weight", None)
        if isinstance(own, Tensor) and own.shape == weight.shape and torch.equal(own, weight):
            return module
    raise AssertionError("the output projection is no module's own weight")


METHODS = (
    Method("attention weight, last layer", last_weight, False, "1 pass"),
    Method("attention weight, mean of layers", mean_weight, False, "1 pass"),
    Method("attention rollout", rolled_out, False, "1 pass"),
    Method("contribution, norm", contribution_norm, False, "1 pass"),
    Method("contribution, share", contribution_share, False, "1 pass"),
    Method("direct logit attribution", direct_attribution, True, "2 passes, 1 back"),
    Method("gradient × input", gradient_times_input, True, "2 passes, 1 back"),
    Method("integrated gradients", integrated, True, "32 passes, 32 back"),
    Method("attribution patching, states", patched_states, True, "3 passes, 1 back"),
    Method("attribution patching, edges", patched_edges, True, "2 passes, 1 back"),
    Method("random order", at_random, False, "none"),
)
