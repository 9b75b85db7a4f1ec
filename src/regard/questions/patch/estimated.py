"""Estimate what every patch of hidden states would do to an outcome, from two runs and one gradient.

Patching layer n at token i with the source's states moves the outcome, to the first order, by
(source[n, i] - run[n, i]) · ∂outcome/∂run[n, i] (Nanda 2023, "Attribution Patching: Activation Patching At Industrial
Scale"). `patch_sweep` measures the same. If the two differ much, the outcome is not linear between the runs.
"""

from typing import TYPE_CHECKING

from regard.display.answer import Read
from regard.errors import RegardError
from regard.explain.causes.outcomes import Outcome, number_of
from regard.models.gradient_runs import gradient_run
from regard.questions.patch.answer import Direction, PatchSweep
from regard.questions.patch.by_construction import Layer, by_construction
from regard.questions.patch.sweep import DIRECTIONS
from regard.text.tokens import shortened

if TYPE_CHECKING:
    from regard.models.model import Model

METHOD = "attribution-patching"


def attribution_patching(
    model: "Model", clean: str, corrupted: str, outcome: Outcome, *, direction: Direction = "denoising"
) -> PatchSweep:
    """Estimate a sweep of patches of hidden states over all layers and positions."""
    if direction not in DIRECTIONS:
        raise RegardError(f"direction: given {direction!r}, needs 'denoising' or 'noising'")
    if model.pairs:
        raise RegardError(
            f"attribution_patching: {model.name} is an encoder-decoder, a model with a single stack is needed"
        )
    plain = [model.trace(text, attention_outputs=False) for text in (clean, corrupted)]
    run, source = (plain[1], plain[0]) if direction == "denoising" else (plain[0], plain[1])
    if len(run.tokens) != len(source.tokens):
        raise RegardError(
            f"attribution_patching: {shortened(clean)} has {len(plain[0].tokens)} tokens, {shortened(corrupted)} "
            f"{len(plain[1].tokens)}: texts of one length are needed"
        )
    done, own = gradient_run(model, run)
    (theirs, _), value = gradient_run(model, source), number_of(outcome, own)
    (states,), (others,) = done.states, theirs.states
    slopes = done.gradients(value, states)
    moves = [
        ((other.detach() - state.detach()).double() * slope.double())[0].sum(-1)
        for state, other, slope in zip(states, others, slopes, strict=True)
    ]
    layers: tuple[Layer, ...] = ("input", *range(len(states) - 1))
    columns = tuple(f"{token.text} {n}" for n, token in enumerate(run.tokens))
    start = float(value.detach())
    outcomes = [[start + each for each in row.tolist()] for row in moves]
    name = f"{outcome.name}, estimated by gradients"
    ends = start, outcome.of(source)
    places = [((n,), (n,)) for n in range(len(columns))]
    given = by_construction(run, source, None, layers, places, outcomes, ends, estimated=True)
    return PatchSweep(
        "hidden_states", "positions", direction, clean, corrupted, name, *ends, layers, columns, outcomes,
        given=given, method=METHOD, about=Read.of(*plain),
    )  # fmt: skip
