"""Patch activations of one run into another at every layer and position, or layer and head, and measure the effect.

    denoising   patches from the clean run into the corrupted run show which activations are sufficient
    noising     patches from the corrupted run into the clean run show which activations are necessary

A cell's share is (outcome - run's outcome) / (source's outcome - run's outcome). It is 0 if the patch changes nothing,
and 1 if the outcome equals the source's. For both directions, see Heimersheim and Nanda 2024, "How to use and interpret
activation patching".
"""

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from regard.capture.build_trace import NO_OUTPUTS, REUSED
from regard.capture.interventions.activations import OF_HEADS, WHATS, What, patch
from regard.capture.interventions.names import Part, places_of_intervention, tokens_at, written
from regard.display.answer import Read
from regard.errors import RegardError
from regard.explain.causes.outcomes import AnyTrace, Outcome, chosen_outcome, number_of, probability
from regard.explain.wording import Place, place_in
from regard.models.model import Model
from regard.models.readout import gradient_run
from regard.questions.patch.answer import (
    By,
    Direction,
    Layer,
    PatchSweep,
    Reason,
)
from regard.text.tokens import shortened
from regard.trace.trace import Trace

DIRECTIONS = ("denoising", "noising")
METHOD = "attribution-patching"
NEAR = 5e-3  # fractions this close to 1 are printed as 100 %
ALIKE = 1e-6  # relative to the largest value; smaller differences between two runs are rounding errors
TokenNumbers = tuple[int, ...]


def patch_sweep(
    model: Model,
    clean: str,
    corrupted: str,
    outcome: Outcome,
    *,
    what: What = "hidden_states",
    by: By | None = None,
    direction: Direction = "denoising",
    layers: Collection[Layer] | None = None,
    at: Place | Sequence[Place] | None = None,
    targets: tuple[str, str] | None = None,
    part: Part | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> PatchSweep:
    """Patch one text's run with another's at every layer and position, or every head (activation patching).

    Runs are batched. They reuse the layers below a patch and, in a causal model, the tokens before it. The status notes
    exceptions.

    Args:
        model: the model of both texts.
        clean, corrupted: the two texts.
        outcome: measures each run, such as `regard.outcomes.logit_difference(...)` or `cosine(...)`.
        what: the activations: "hidden_states", "head_outputs", "values", "weights" or "feed_forward".
        by: patch "positions" or "heads". Default: heads if the activations have them.
        direction: "denoising" patches the clean text's activations into the corrupted run, "noising" the other way.
        layers: numbers, or "input". Default: all.
        at: words or token numbers. Default: all.
        targets: for an encoder-decoder, the target of each text.
        part: for an encoder-decoder, "encoder", "decoder" or "cross".
        progress: called with the number of finished runs and the total.

    Raises:
        RegardError: the texts can't be aligned, the model lacks the outcome, or as in `regard.patch`.
    """
    if direction not in DIRECTIONS:
        raise RegardError(f"direction: got {direction!r}, expected 'denoising' or 'noising'")
    if what not in WHATS:
        raise RegardError(f"what: got {what!r}, expected one of {', '.join(map(repr, WHATS))}")
    by = by or ("heads" if what in OF_HEADS else "positions")
    if by not in ("positions", "heads") or (by == "heads" and what not in OF_HEADS):
        ways = "'positions'" + " or 'heads'" * (what in OF_HEADS)
        raise RegardError(f"by: got {by!r}, but {what} can be patched by {ways}")
    if not isinstance(outcome, Outcome):
        kind = type(outcome).__name__
        raise RegardError(f"outcome: got {kind}, expected an Outcome, such as outcomes.probability(...)")
    if model.pairs != (targets is not None):
        needs = "the two texts that its decoder reads" if model.pairs else "no targets: it is not an encoder-decoder"
        raise RegardError(f"targets: {model.name} needs {needs}")
    texts, target_texts = [clean, corrupted], list(targets) if targets is not None else [None, None]
    traces: list[AnyTrace] = []
    for text, target in zip(texts, target_texts, strict=True):
        pair: Any = {} if target is None else {"target": target}
        traces.append(model.trace(text, attention_outputs=False, logits=outcome.logits, **pair))
    run, source = (1, 0) if direction == "denoising" else (0, 1)
    run_side, source_side = (_trace_to_patch(traces[n], what, part) for n in (run, source))
    positions = places_of_intervention("at", at)
    depth, heads = _patched_layers_and_heads(traces[run], what, part)
    all_layers: tuple[Layer, ...] = (*(("input",) if what == "hidden_states" else ()), *range(depth))
    rows = all_layers if layers is None else tuple(layer for layer in all_layers if layer in layers)
    unknown = [layer for layer in layers or () if layer not in all_layers]
    if unknown or not rows:
        raise RegardError(f"layers: got {unknown or 'none'}, expected some of {', '.join(map(str, all_layers))}")
    if positions is None and len(run_side.tokens) != len(source_side.tokens):
        counts = f"{len(run_side.tokens)} tokens, {shortened(source_side.text)} {len(source_side.tokens)}"
        raise RegardError(f"patch_sweep: {shortened(run_side.text)} has {counts}: pass words of both as at=")
    columns = [f"head {n}" for n in range(heads)] if by == "heads" else []
    aligned: list[tuple[tuple[int, ...], tuple[int, ...]]] = []  # per position: tokens of the run, and of the source
    for pos in () if by == "heads" else range(len(run_side.tokens)) if positions is None else positions:
        tokens, sources = (tokens_at("at", side.text, side.tokens, (pos,)) for side in (run_side, source_side))
        if len(tokens) != len(sources):
            raise RegardError(
                f"patch_sweep: {written((pos,))} is {len(tokens)} tokens in {shortened(run_side.text)} and "
                f"{len(sources)} in {shortened(source_side.text)}: they cannot be aligned"
            )
        aligned.append((tokens, sources))
        columns.append(f"{run_side.tokens[pos].text} {pos}" if isinstance(pos, int) else written((pos,)))
    if by == "heads":
        cells: list[Any] = [{"at": None if positions is None else [*positions], "head": n} for n in range(heads)]
    else:
        cells = [{"at": [*tokens], "source_at": [*sources]} for tokens, sources in aligned]
    patches = [patch(what, layer=layer, source=traces[source], part=part, **where) for layer in rows for where in cells]
    outcomes = [[math.nan] * len(columns) for _ in rows]
    notes: dict[str, None] = {}
    runs = model.ablated(texts[run], [[item] for item in patches], target=target_texts[run], logits=outcome.logits)
    for count, (number, trace) in enumerate(runs, 1):
        row, column = divmod(number, len(columns))
        outcomes[row][column] = outcome.of(trace)
        notes |= dict.fromkeys(note for note in trace.sides[-1].status.notes if note in REUSED)
        if progress is not None:
            progress(count, len(patches))
    ends = outcome.of(traces[run]), outcome.of(traces[source])
    trivial: tuple[tuple[int, int, Reason], ...] = ()
    if what == "hidden_states":
        trivial = trivial_patches(traces[run], traces[source], part, rows, aligned, outcomes, ends)
    unpatched = traces[run].status
    # no sweep needs attention block outputs, so leave out the note on them
    status = replace(unpatched, notes=(*(note for note in unpatched.notes if note != NO_OUTPUTS), *notes))
    return PatchSweep(
        what, by, direction, clean, corrupted, outcome.name, *ends, rows, tuple(columns), outcomes, written(positions),
        part, tuple(" ".join(source_side.tokens[n].text.strip() for n in sources) for _, sources in aligned), trivial,
        about=Read(((clean, target_texts[0]), (corrupted, target_texts[1])), (status,)),
    )  # fmt: skip


def patch_traces(
    model: Model,
    traces: Sequence[AnyTrace],
    *,
    to: str | None,
    against: str | None,
    word: str | None,
    at: Sequence[str],
    noising: bool,
    part: Any,
    progress: Callable[[float, float], None] | None,
    **options: Any,
) -> PatchSweep:
    """Run a patch sweep on the texts of a clean and a corrupted trace, with the options of `regard patch`."""
    (clean, corrupted), side = traces, traces[0].sides[0 if part == "encoder" else -1]
    positions = [int(pos) if pos.isdecimal() and isinstance(place_in(side, pos), int) else pos for pos in at]
    return patch_sweep(
        model, clean.sides[0].text, corrupted.sides[0].text,
        chosen_outcome(model, clean, probability, to=to, against=against, word=word), at=positions or None, part=part,
        direction="noising" if noising else "denoising", progress=progress,
        targets=(clean.sides[-1].text, corrupted.sides[-1].text) if model.pairs else None, **options,
    )  # fmt: skip


def _trace_to_patch(trace: AnyTrace, what: What, part: Part | None) -> Trace:
    """Return the trace of the stack whose tokens are patched."""
    if isinstance(trace, Trace):
        return trace
    if part is None:
        raise RegardError('patch_sweep: an encoder-decoder needs part="encoder", "decoder" or "cross"')
    of_source = part == "encoder" or (part == "cross" and what == "values")
    return trace.encoder if of_source else trace.decoder


def _patched_layers_and_heads(trace: AnyTrace, what: What, part: Part | None) -> tuple[int, int]:
    """Return the number of layers and of heads to patch, 0 heads for activations without heads."""
    side = trace_of_patched_stack(trace, part)
    maps = side.cross if part == "cross" else side.attention
    if what not in OF_HEADS:
        return len(side.hidden_states) - 1, 0
    first = maps.calls[0]
    values = (side.cross_values if part == "cross" else side.values)[first]
    if what == "values" and values is not None:
        return len(maps), values.shape[0]
    return len(maps), maps[first].shape[0]


def trivial_patches(
    run: AnyTrace,
    source: AnyTrace,
    part: Part | None,
    layers: Sequence[Layer],
    positions: Sequence[tuple[TokenNumbers, TokenNumbers]],
    outcomes: Sequence[Sequence[float]],
    ends: tuple[float, float],
    *,
    estimated: bool = False,
) -> tuple[tuple[int, int, Reason], ...]:
    """List (row, column, reason) of hidden-state patches that give the source's outcome in any model.

    part: an encoder-decoder's patched stack. layers: the rows' layers. positions: for each column, the patched tokens
    of the run and of the source. outcomes: (rows, columns). ends: the outcomes of the run and of the source. estimated:
    whether outcomes are gradient estimates, which needn't reach the source's outcome. A measured patch that doesn't
    reach it is never listed, because some architectures pass more than hidden states from layer to layer.
    """
    if ends[0] == ends[1]:
        return ()
    trivial: list[tuple[int, int, Reason]] = []
    last = len(trace_of_patched_stack(run, part).hidden_states) - 1
    for row, layer in enumerate(layers):
        state = 0 if layer == "input" else layer + 1
        for column, (tokens, sources) in enumerate(positions):
            reached = abs(outcomes[row][column] - ends[1]) <= NEAR * abs(ends[1] - ends[0])
            unchanged_elsewhere = all(value == ends[0] for n, value in enumerate(outcomes[row]) if n != column)
            if (reached or estimated) and _same_outside_patch(run, source, part, state, tokens, sources):
                trivial.append((row, column, "elsewhere"))
            elif state == last and part != "encoder" and (unchanged_elsewhere if estimated else reached):
                trivial.append((row, column, "read"))
    return tuple(trivial)


def _same_outside_patch(
    run: AnyTrace, source: AnyTrace, part: Part | None, state: int, tokens: TokenNumbers, sources: TokenNumbers
) -> bool:
    """Return whether two runs agree at all unpatched tokens and in the unpatched stack."""
    run_side, source_side = trace_of_patched_stack(run, part), trace_of_patched_stack(source, part)
    if tokens != sources or len(run_side.tokens) != len(source_side.tokens):
        return False
    others = [n for n in range(len(run_side.tokens)) if n not in tokens]
    compared = [(run_side.hidden_states[state][others], source_side.hidden_states[state][others])]
    if part is not None:  # compare the encoder's output, or the decoder's input
        number, stack = (-1, 0) if part == "decoder" else (0, 1)
        compared.append((run.sides[stack].hidden_states[number], source.sides[stack].hidden_states[number]))
    return all(
        a.shape == b.shape and (not a.numel() or float((a - b).abs().max()) <= ALIKE * float(a.abs().max()))
        for a, b in compared
    )


def trace_of_patched_stack(trace: AnyTrace, part: Part | None) -> Trace:
    """Return the trace of an encoder-decoder's patched stack, or a trace with a single stack unchanged."""
    return trace if isinstance(trace, Trace) else trace.encoder if part == "encoder" else trace.decoder


def attribution_patching(
    model: Model, clean: str, corrupted: str, outcome: Outcome, *, direction: Direction = "denoising"
) -> PatchSweep:
    """Estimate `patch_sweep` of hidden states over all layers and positions, from two runs and one gradient.

    To first order, a patch of layer n at token i changes the outcome by (source[n, i] - run[n, i]) · ∂outcome/∂run[n,
    i] (Nanda 2023, "Attribution Patching: Activation Patching At Industrial Scale").

    outcome: must return a tensor. direction: as in `patch_sweep`.

    Raises:
        RegardError: the model is an encoder-decoder, the texts differ in length, or as in `attribute_to_tokens`.
    """
    if direction not in DIRECTIONS:
        raise RegardError(f"direction: got {direction!r}, expected 'denoising' or 'noising'")
    if model.pairs:
        requirement = "a model with a single stack is needed"
        raise RegardError(f"attribution_patching: {model.name} is an encoder-decoder, {requirement}")
    traces = [model.trace(text, attention_outputs=False) for text in (clean, corrupted)]
    run, source = (traces[1], traces[0]) if direction == "denoising" else (traces[0], traces[1])
    if len(run.tokens) != len(source.tokens):
        raise RegardError(
            f"attribution_patching: {shortened(clean)} has {len(traces[0].tokens)} tokens, {shortened(corrupted)} "
            f"{len(traces[1].tokens)}: they must have the same length"
        )
    gradient_pass, in_graph = gradient_run(model, run)
    (source_pass, _), value = gradient_run(model, source), number_of(outcome, in_graph)
    (states,), (source_states,) = gradient_pass.states, source_pass.states
    slopes = gradient_pass.gradients(value, states)
    changes = [
        ((source_state.detach() - state.detach()).double() * slope.double())[0].sum(-1)
        for state, source_state, slope in zip(states, source_states, slopes, strict=True)
    ]
    layers: tuple[Layer, ...] = ("input", *range(len(states) - 1))
    columns = tuple(f"{token.text} {n}" for n, token in enumerate(run.tokens))
    start = float(value.detach())
    outcomes = [[start + change for change in row.tolist()] for row in changes]
    name = f"{outcome.name}, estimated by gradients"
    ends = start, outcome.of(source)
    positions = [((n,), (n,)) for n in range(len(columns))]
    trivial = trivial_patches(run, source, None, layers, positions, outcomes, ends, estimated=True)
    return PatchSweep(
        "hidden_states", "positions", direction, clean, corrupted, name, *ends, layers, columns, outcomes,
        given=trivial, method=METHOD, about=Read.of(*traces),
    )  # fmt: skip
