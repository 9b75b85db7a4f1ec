"""Rank tokens and heads by the effect of ablating each of them on a word's last hidden state.

There are three measures: attention weight, contribution (Kobayashi et al. 2020, 2021), and the effect of removing the
token (`removal`) or ablating the head. Spearman's rank correlation (1904) compares the first two with the third.
docs/faithfulness.md compares all measures on many texts.

For a classifier's label, the effect is the fall of its logit. A head's contribution is its output times the logit's
gradient, split by source token. A token's contribution is the sum over heads. Both estimate the fall to first order.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.capture.inputs import probabilities
from regard.capture.interventions import names as interventions
from regard.capture.interventions.names import STACKS, Part, check_intervention_part
from regard.capture.interventions.resolve import Intervention
from regard.display.answer import Read
from regard.errors import RegardError
from regard.explain.causes.ablation_effect import effects, removal, spearman
from regard.explain.causes.contributions import contributions
from regard.explain.causes.outcomes import logit, logits_at, number_of
from regard.explain.texts.occurrences import occurrence_label_in_text
from regard.explain.weights.sinks import sinks_of
from regard.models.inputs import class_or_token_id
from regard.models.model import Model
from regard.models.readout import ablated_runs, gradient_run
from regard.questions.why import TOKENS_BY, TokensBy
from regard.questions.why.answer import By, Cause, Why, WhyOfTexts
from regard.text.tokens import Token
from regard.text.words import Word, only_word, word_in_neither_text
from regard.trace.labelled_map import attention_from
from regard.trace.trace import PairTrace, Trace

# Runs the text under each set of ablations and yields (number of the set, trace) in any order, as `model.ablated`.
Ablated = Callable[[Sequence[Sequence[Any]]], Iterable[tuple[int, "Trace | PairTrace"]]]

NAMES = {None: "", "encoder": "encoder ", "decoder": "decoder ", "cross": "cross "}


@dataclass(frozen=True)
class Decision:
    """A classifier's label at a word or of a whole text. For a whole text, the word has all tokens and the text "".

    measure: returns the label's logit in a trace, and its probability (None for independent logits). sources: for each
    attention call, the contribution of each head's attention to each token, (H, S), in logits.
    """

    label: str
    word: Word
    measure: Callable[[Trace], tuple[float, float | None]]
    sources: Sequence[Float[Tensor, "H S"]]


def label_decision(model: Model, trace: Trace | PairTrace, to: str | int, word: str | Word | None) -> Decision:
    """Return a label's `Decision` at a word's first token, or for a whole text (word None), with one gradient."""
    if not model.labels or not isinstance(trace, Trace):
        raise RegardError(f"why: to: {model.name} doesn't classify single texts: pass a word")
    number = class_or_token_id(model.labels, None, to, f"why: to: {model.name}")
    occurrence = None if word is None else only_word(trace.text, trace.tokens, word)

    def measure(run: Trace) -> tuple[float, float | None]:
        logits = logits_at(run, occurrence).double()
        chances = probabilities(logits, run.labels, model._session.original)
        return float(logits[number]), None if chances is None else float(chances[number])

    gradient_pass, side = gradient_run(model, trace, heads=True)
    values = gradient_pass.head_values
    slopes = gradient_pass.gradients(number_of(logit(model, number, at=occurrence), side), values)
    sources = [(value.detach().double() * slope.double())[0].sum(2).cpu()
               for value, slope in zip(values, slopes, strict=True)]  # fmt: skip
    whole_text = Word("", 0, 0, tuple(range(len(trace.tokens))))
    return Decision(model.labels[number], occurrence or whole_text, measure, sources)


def occurrences_to_ask_why(trace: Trace | PairTrace, word: str) -> list[tuple[Part | None, Word]]:
    """Return every occurrence of a word with its stack. An encoder-decoder's target comes before the source."""
    if isinstance(trace, Trace):
        return [(None, occurrence) for occurrence in trace.word(word)]
    words: list[tuple[Part | None, Word]] = []
    missing: list[str] = []
    parts: tuple[tuple[Part, Trace], ...] = (("decoder", trace.decoder), ("encoder", trace.encoder))
    for part, side in parts:
        try:
            words += [(part, occurrence) for occurrence in side.word(word)]
        except RegardError as error:
            missing.insert(0, str(error))
    if not words:
        raise word_in_neither_text(*missing)
    return words


def only_occurrence(trace: Trace | PairTrace, word: str, part: Part | None = None) -> tuple[Part | None, Word]:
    """Return the only occurrence of a word with its stack. part: search only this stack's text."""
    check_intervention_part(part, STACKS)
    if isinstance(trace, PairTrace) and part is not None:
        side = trace.encoder if part == "encoder" else trace.decoder
        occurrences: list[tuple[Part | None, Word]] = [(part, occurrence) for occurrence in side.word(word)]
    else:
        occurrences = [(part or of, occurrence) for of, occurrence in occurrences_to_ask_why(trace, word)]
    if len(occurrences) > 1:
        raise RegardError(
            f"why: {word!r} occurs {len(occurrences)} times: pass one of trace.word({word!r}), and `part` for two texts"
        )
    return occurrences[0]


def why(
    model: Model,
    trace: Trace | PairTrace,
    word: str | Word | None = None,
    *,
    to: str | int | None = None,
    part: Literal["encoder", "decoder"] | None = None,
    tokens_by: TokensBy = "removal",
    progress: Callable[[int, int], None] | None = None,
) -> Why:
    """Rank the tokens and heads that affect a word, or a classifier's label, by ablating each of them.

    Args:
        model: the model of the trace.
        trace: a trace without interventions.
        word: a word that occurs once, or one occurrence (`trace.word(...)[n]`). None for the label of a whole text.
        to: a classifier's label (for a token classifier, at the word). Effects are then on the label's logit, and are
            compared with contributions estimated from one gradient.
        part: for an encoder-decoder, the stack that reads the word's text. Default: the only stack with the word.
        tokens_by: rank tokens by "removal" (no token can attend to them), "edges" (the word can't attend to them),
            "contribution" or "weight". See docs/faithfulness.md.
        progress: called with the number of finished layers and the total.

    Raises:
        RegardError: the word doesn't occur or occurs several times, an attention block's structure isn't verified, part
            is missing or doesn't fit, or tokens_by is unknown.
    """
    runs = ablated_runs(model, trace, "why")
    if to is not None:
        decision = label_decision(model, trace, to, word)
        return rank_causes(trace, decision.word, runs, tokens_by=tokens_by, progress=progress, decision=decision)
    if not isinstance(word, (str, Word)):
        raise RegardError(f"why: got {type(word).__name__}, expected a word, or one occurrence: trace.word(...)[n]")
    of, occurrence = only_occurrence(trace, word, part) if isinstance(word, str) else (part, word)
    return rank_causes(trace, occurrence, runs, part=of, tokens_by=tokens_by, progress=progress)


def why_of_texts(
    model: Model,
    traces: Sequence[Trace | PairTrace],
    word: str | None,
    *,
    to: str | None = None,
    tokens_by: Any = "removal",
    progress: Callable[[float, float], None] | None = None,
) -> WhyOfTexts:
    """Rank tokens and heads by their effect on every occurrence of a word, or on whole texts' label (to)."""
    of_texts: list[Any] = [[(None, None)] if word is None else occurrences_to_ask_why(trace, word) for trace in traces]
    answers: list[tuple[str, Why]] = []

    def advance(count: int, runs: int) -> None:
        if progress is not None:
            progress(len(answers) + count / runs, sum(map(len, of_texts)))

    for number, (trace, words) in enumerate(zip(traces, of_texts, strict=True), 1):
        for nth, (part, occurrence) in enumerate(words):
            label = occurrence_label_in_text(str(number), nth, len(words))
            one = why(model, trace, occurrence, to=to, part=part, tokens_by=tokens_by, progress=advance)
            answers.append((label, one))
    about = replace(Read.of(*traces), statuses=tuple(trace.status for trace in traces))
    return WhyOfTexts(answers, about=about, traces=traces)


def rank_causes(
    trace: Trace | PairTrace,
    word: Word,
    ablated: Ablated,
    *,
    part: Part | None = None,
    tokens_by: TokensBy = "removal",
    progress: Callable[[int, int], None] | None = None,
    decision: Decision | None = None,
) -> Why:
    """Rank tokens and heads by their effect on an occurrence of a word, or on a decision's label."""
    if tokens_by not in TOKENS_BY:
        raise RegardError(f"tokens_by: got {tokens_by!r}, expected one of {', '.join(map(repr, TOKENS_BY))}")
    # for each kind of attention from the word: its name, its maps, and the tokens that it can attend to
    kinds: list[tuple[Part | None, Sequence[AttentionMap], Sequence[Token]]]
    if isinstance(trace, Trace):
        if part is not None:
            raise RegardError(f"why: part {part!r} is for encoder-decoders, but {trace.status.model} reads one text")
        target_side, kinds = trace, [(None, trace.attention, trace.tokens)]
    else:
        check_intervention_part(part, STACKS)
        if part is None:
            ways = " or ".join(f"part={stack!r}" for stack in STACKS)
            name = trace.status.model
            raise RegardError(f"why: {name} is an encoder-decoder: choose the text with the word: {ways}")
        target_side = trace.encoder if part == "encoder" else trace.decoder
        kinds = [(part, target_side.attention, target_side.tokens)]
        kinds += [("cross", target_side.cross, trace.encoder.tokens)] if part == "decoder" else []
    causes: list[Cause] = []
    sets: list[list[Intervention]] = []  # the ablations for each cause
    for kind, maps, sources in kinds:
        rows = [attention_from(weights, word).cpu() for weights in maps]  # (H, S) per layer
        cross = kind == "cross"
        of: Part | None = "cross" if cross else None
        shares: Sequence[Tensor] = () if decision is None else decision.sources
        shares = shares or [contributions(target_side, word, n, part=of).shares.abs().cpu() for n in range(len(rows))]
        sinks = {sink.token for sink in sinks_of(maps, sources, itself=not cross)}
        for position, token in enumerate(sources):
            if not any(bool((row[:, position] > 0).any()) for row in rows):
                continue  # no attention to ablate
            weight = float(torch.stack([row[:, position].mean() for row in rows]).mean())
            contribution = float(torch.stack([share[:, position].sum() for share in shares]).mean())
            contribution *= len(shares) if decision is not None else 1
            is_own = not cross and position in word.tokens and bool(word.text)  # "" for a whole text's label
            flags = {"sink": position in sinks, "special": token.special, "own": is_own}
            causes.append(Cause(token.text, position, None, None, weight, contribution, math.nan, part=kind, **flags))
            if tokens_by == "edges":
                sets.append([interventions.ablate(interventions.edge(word, position, part=kind))])
            else:
                sets.append([*removal(trace, position, part="encoder" if cross else kind)])
        special = torch.tensor([token.special or n in sinks for n, token in enumerate(sources)])
        for layer, (row, share) in enumerate(zip(rows, shares, strict=True)):
            for head in range(len(row)):
                name = f"{NAMES[kind]}layer {layer}, head {head}"
                on_words = float(row[head, ~special].sum()) if bool(special.any()) else 1.0  # exactly, without rounding
                contribution = float(share[head].sum())
                causes.append(Cause(name, None, layer, head, on_words, contribution, math.nan, part=kind))
                sets.append([interventions.ablate(interventions.head(layer, head, part=kind))])
    work = [len(kinds[0][1]) - (cause.layer or 0) for cause in causes]  # layers from the first changed layer on
    measure_effect, done = effects(target_side, word), 0
    for number, run in ablated(sets):
        done += work[number]
        if progress is not None:
            progress(done, sum(work))
        ablated_side = run.sides[0 if part == "encoder" else -1]
        changed = measure_effect(ablated_side)
        causes[number] = replace(causes[number], effect=changed.moved, divergence=changed.after_place)
        if decision is not None:
            (before, chance), (after, unlikely) = decision.measure(target_side), decision.measure(ablated_side)
            fall = None if chance is None or unlikely is None else chance - unlikely
            causes[number] = replace(causes[number], logit=before - after, probability=fall)
    tokens, heads = ([cause for cause in causes if (cause.head is None) == is_token] for is_token in (True, False))
    by: By = "logit" if decision is not None else "effect" if heads[0].divergence is None else "divergence"
    agreements = _rank_correlations(tokens, by), _rank_correlations(heads, by)
    tokens.sort(key=lambda cause: -abs(getattr(cause, by if tokens_by in ("removal", "edges") else tokens_by)))
    heads.sort(key=lambda cause: -abs(getattr(cause, by)))
    label = (None, None, None) if decision is None else (decision.label, *decision.measure(target_side))
    return Why(word.text, tokens, heads, *agreements, by, part, tokens_by, *label, about=Read.of(trace))


def _rank_correlations(causes: list[Cause], by: str) -> tuple[float, float]:
    """Return the effect's Spearman correlations with weight (of absolute effects) and with contribution."""
    measured = [getattr(cause, by) for cause in causes]
    sizes = list(map(abs, measured))  # because weights have no sign
    return spearman([c.weight for c in causes], sizes), spearman([c.contribution for c in causes], measured)
