"""Attribute an outcome to a model's input tokens, by gradients.

Both methods take gradients with respect to the token embeddings, through Captum. Integrated gradients (Sundararajan,
Taly and Yan 2017) sum to the outcome minus the baseline's outcome, up to a gap, because the integral is estimated from
a few steps. Gradient x input (Denil et al. 2014) is exact if the outcome is linear in the embeddings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.checks import is_whole
from regard.display.answer import Answer, Read
from regard.display.panels import Bars, Panel, Strip
from regard.display.sentences import sentences
from regard.errors import RegardError
from regard.explain.causes.outcomes import AnyTrace, Outcome, chosen_outcome, logit, number_of
from regard.explain.wording import place_in, tokens_of
from regard.models.model import Model
from regard.models.readout import gradient_run
from regard.questions.attribution.direct import (
    COLOURS,
    TABLE,
    Attribution,
    as_text,
    attribution,
    extreme_parts,
)
from regard.questions.patch.answer import PatchSweep
from regard.questions.patch.sweep import attribution_patching
from regard.shown import Row
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.text.words import spelling, words

Method = Literal["gradient x input", "integrated gradients"]
Unit = Literal["token", "word"]
STEPS = 32, 64, 128  # numbers of integration steps to try in turn, until the gap is small
LARGE_GAP = 0.05  # relative to the outcome's change from the baseline


def tokens_sentences(result: "TokenAttribution") -> list[str]:
    """Return sentences on the tokens or words that contribute most, after a warning if the gap is large."""
    numbers = extreme_parts(result.by(result.unit)) | {"outcome": result.outcome_name, "value": as_text(result.outcome)}
    if result.baseline is not None:
        numbers["baseline"] = as_text(result.baseline, result.outcome)
        if result.misses_its_sum:
            numbers |= {"sum": as_text(float(result.scores.sum())), "due": as_text(result.outcome - result.baseline)}
    return sentences(TABLE, numbers)


def tokens_panels(result: "TokenAttribution") -> list[Panel]:
    """Return a strip of each text with its tokens' scores, and bars of the tokens or words by score."""
    method = f"Method: {result.method}"
    if result.baseline is not None:
        method += f", {result.steps} steps from the baseline (outcome {as_text(result.baseline)})"
    bars = Bars(
        name=f"Every {result.unit}", title=result.title(), note=f"{method}.", unit="contribution", part=result.unit,
        parts=result.by(result.unit), whole=float(result.scores.sum()), screen=True, picture=True, caption=f"{method}.",
    )  # fmt: skip
    stops = list(accumulate(result.sides))
    strips = []
    for side, stop in enumerate(stops):
        ids = range(stop - result.sides[side], stop)
        of = f" of the {('source', 'target')[side]}" if len(stops) > 1 else ""
        strips.append(Strip(
            name=f"Tokens{of}", title=f"Contribution of each token{of}", note=COLOURS, unit="contribution",
            tokens=[result.tokens[n].text for n in ids], values=[float(result.scores[n]) for n in ids], signed=True,
        ))  # fmt: skip
    return [*strips, bars]


@dataclass(frozen=True, eq=False, repr=False)
class TokenAttribution(Answer):
    """Each token's contribution to an outcome.

    scores, norms: (L,) in float64, the sum and the norm of each token's vector. An encoder-decoder's source precedes
    its target. baseline: the baseline's outcome. gap: |sum of the scores - (outcome - baseline)|. Both are None without
    a baseline. sides: the number of tokens of each text. unit: whether tokens or words are shown.
    """

    format = "regard attribute"
    findings, panels = tokens_sentences, tokens_panels

    method: Method
    outcome_name: str
    outcome: float
    baseline: float | None
    gap: float | None
    steps: int
    scores: Float[Tensor, " L"]
    norms: Float[Tensor, " L"]
    tokens: tuple[Token, ...]
    sides: tuple[int, ...]
    unit: Unit = field(default="token", kw_only=True)

    def words(self) -> list[tuple[str, float]]:
        """Return each word with the sum of its tokens' scores, in the text's order."""
        return [(row["text"], row["score"]) for row in self._unit_rows("word")]

    def by(self, by: Unit = "token") -> list[tuple[str, float]]:
        """Return each token's or word's name and score, the largest absolute scores first."""
        parts = []
        for row in self._unit_rows(by):
            side = f" of the {row['side']}" if "side" in row else ""
            parts.append((f"{quoted(row['text'].strip())} ({row['token']}){side}", row["score"]))
        return sorted(parts, key=lambda part: -abs(part[1]))

    def rows(self) -> list[Row]:
        """Return one row per token: side (of an encoder-decoder), token, text, score, norm. For words: word, score."""
        if self.unit == "word":
            return [{"word": name, "score": score} for name, score in self.words()]
        return [row | {"norm": norm} for row, norm in zip(self._unit_rows("token"), self.norms.tolist(), strict=True)]

    @property
    def misses_its_sum(self) -> bool:
        """Return whether the gap of integrated gradients is so large that single scores can't be trusted."""
        gap, baseline = self.gap, self.baseline
        return gap is not None and baseline is not None and gap > LARGE_GAP * abs(self.outcome - baseline)

    def title(self) -> str:
        """Return a title that names the outcome and its value."""
        return f"Contribution of each {self.unit} to the {self.outcome_name} ({as_text(self.outcome)})"

    def exactness(self) -> list[str]:
        """Return notes on the exactness of the scores."""
        if self.gap is None:
            return ["Gradient × input is a linear estimate. The scores need not sum to the outcome."]
        gap = f"{self.gap:.1e}" if self.gap < 0.01 else as_text(self.gap)
        return [f"The scores sum to the outcome minus the baseline's outcome within {gap}."]

    def data(self) -> dict[str, object]:
        """Return the outcome and the scores of tokens and of words, as JSON data."""
        data: dict[str, object] = {"method": self.method.replace(" ", "-"), "outcome": self.outcome_name}
        data |= {"value": self.outcome, "baseline": self.baseline, "gap": self.gap, "steps": self.steps}
        return data | {"tokens": replace(self, unit="token").rows(), "words": replace(self, unit="word").rows()}

    def _unit_rows(self, unit: Unit) -> list[dict[str, Any]]:
        """Return a row per token or word: side (of an encoder-decoder), first token, text and score."""
        rows = []
        for n, stop in enumerate(accumulate(self.sides)):
            side = {"side": ("source", "target")[n]} if len(self.sides) > 1 else {}
            tokens, scores = self.tokens[stop - self.sides[n] : stop], self.scores[stop - self.sides[n] : stop]
            for group in words(tokens) if unit == "word" else [range(k, k + 1) for k in range(len(tokens))]:
                text = spelling(tokens, group) if unit == "word" else tokens[group[0]].text
                rows.append({**side, "token": group[0], "text": text, "score": float(scores[list(group)].sum())})
        return rows


def attribute_to_tokens(
    model: Model,
    trace: AnyTrace,
    outcome: Outcome,
    *,
    method: Method = "integrated gradients",
    steps: int | None = None,
    baseline: Literal["mean", "zero"] | int = "mean",
) -> TokenAttribution:
    """Attribute an outcome to the tokens of a trace, by gradients.

    Args:
        model: the model of the trace.
        trace: a trace without interventions.
        outcome: an outcome that returns a tensor, such as those of `regard.outcomes`.
        method: "integrated gradients" or "gradient x input".
        steps: number of steps of the Gauss-Legendre integral. None: 32, then 64 and 128 while the gap is above 5 % of
            the outcome's change. The result with the smallest gap is returned.
        baseline: the embedding at every token of the baseline: the vocabulary's "mean", "zero", or a token id's.

    Raises:
        RegardError: the method is unknown, the outcome isn't a tensor, or the embeddings can't be replaced.
    """
    try:
        from captum.attr import InputXGradient, IntegratedGradients
    except ImportError:
        raise RegardError('gradients at tokens need Captum: pip install "regard[captum]"') from None
    if method not in ("gradient x input", "integrated gradients"):
        raise RegardError(f"method: got {method!r}, expected 'gradient x input' or 'integrated gradients'")
    if steps is not None and (not is_whole(steps) or steps < 1):
        raise RegardError(f"steps: got {steps!r}, expected a whole number, 1 or more")

    def forward(*embeddings: Float[Tensor, "1 _ _"]) -> Float[Tensor, " 1"]:
        """Return the outcome (1,) of a run with these token embeddings, (1, L, W) per text."""
        return number_of(outcome, gradient_run(model, trace, lambda n, _: embeddings[n][0])[1])[None]

    def result_of(products: tuple[Tensor, ...], start: float | None, count: int) -> TokenAttribution:
        """Build the result from input × gradient, a vector per token. start: the baseline's outcome."""
        vectors = torch.cat([product[0].detach().cpu() for product in products])
        scores, norms = vectors.sum(-1), vectors.norm(dim=-1)
        gap = None if start is None else abs(float(scores.sum()) - (value - start))
        tokens = tuple(token for side in trace.sides for token in side.tokens)
        sides, about = tuple(len(side.tokens) for side in trace.sides), Read.of(trace)
        return TokenAttribution(
            method, outcome.name, value, start, gap, count, scores, norms, tokens, sides, about=about
        )  # fmt: skip

    done, side = gradient_run(model, trace)
    value = float(number_of(outcome, side).detach())
    inputs = tuple(embedding.detach()[None].double().requires_grad_() for embedding in done.embeddings)
    if method == "gradient x input":
        return result_of(InputXGradient(forward).attribute(inputs), None, 0)
    starts = tuple(_baseline_embeddings(model, baseline, embeddings) for embeddings in inputs)
    start, results = float(forward(*starts).detach()), []
    for count in STEPS if steps is None else [steps]:
        attributions = IntegratedGradients(forward).attribute(inputs, starts, n_steps=count, internal_batch_size=1)
        results.append(result_of(attributions, start, count))
        if not results[-1].misses_its_sum:
            break
    return min(results, key=lambda result: result.gap or 0.0)


def _baseline_embeddings(
    model: Model, baseline: Literal["mean", "zero"] | int, like: Float[Tensor, "1 L W"]
) -> Float[Tensor, "1 L W"]:
    """Return the baseline's token embedding at every position, (1, L, W), on the device of `like`."""
    if baseline == "zero":
        return torch.zeros_like(like)
    table = model._session.original.get_input_embeddings()
    count = table.num_embeddings
    if baseline != "mean" and not (is_whole(baseline) and 0 <= baseline < count):
        raise RegardError(f"baseline: got {baseline!r}, expected 'mean', 'zero' or one of the ids 0 to {count - 1}")
    with torch.no_grad():
        ids = torch.arange(count) if baseline == "mean" else torch.tensor([baseline])
        return table(ids.to(like.device)).mean(0).to(like).expand_as(like)


def attribute(
    model: Model,
    traces: Sequence[AnyTrace],
    *,
    to: str | None,
    against: str | None,
    word: str | None,
    at: str | None,
    like: str | None,
    method: str,
    by: str | None,
    steps: int | None,
) -> "Attribution | TokenAttribution | PatchSweep":
    """Attribute the outcome of `regard attribute`, with the chosen method. Attribution patching needs two traces."""
    trace, side = traces[0], traces[0].sides[-1]
    unit: Unit = "word" if by == "word" else "token"
    if to is not None and side.logits is None:
        raise RegardError(f"to: {model.name} has no language head: pass word and like, two words of the text")
    token = None if at is None else tokens_of(side, place_in(side, at))[0 if side.labels else -1]
    if method == "direct" and word is None:  # default: the last token, or the whole text for a label
        token = len(side.tokens) - 1 if token is None and not side.labels else token
        return replace(attribution(model, trace, token, to, against=against), unit=unit)
    if method == "direct":
        assert word is not None and like is not None  # noqa: PT018
        result = attribution(model, trace, word, toward=side[like])
        return replace(result, outcome=f"cosine of {quoted(word)} and {quoted(like)}", unit=unit)
    outcome = chosen_outcome(model, trace, logit, to=to, against=against, word=word, like=like, at=token)
    if method == "attribution-patching":
        return attribution_patching(model, traces[0].sides[0].text, traces[1].sides[0].text, outcome)
    name: Any = method.replace("-", " ")
    return replace(attribute_to_tokens(model, trace, outcome, method=name, steps=steps), unit=unit)
