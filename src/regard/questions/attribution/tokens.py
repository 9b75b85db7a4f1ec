"""Attribute an outcome to the tokens that a model read, by gradients at their learned embeddings.

With x the learned embeddings (L, W), f the outcome and b a baseline, token i has

    "gradient x input"        Σ_w (x - 0)[i, w] · ∂f/∂x[i, w]                                   Denil et al. 2014
    "integrated gradients"    Σ_w (x - b)[i, w] · ∫₀¹ ∂f/∂x[i, w] at b + t (x - b) dt           Sundararajan et al. 2017

The second sum to f(x) - f(b) over all tokens; how far the numbers are from that, because the integral is a sum of few
steps, is the gap. The first is exact where f is linear, and only there. Both go through the model's own fused
attention.

A score is the sum over an embedding's components; its norm, the length of what is summed, says how much a token matters
where components cancel each other. Of words, `TokenAttribution.words` joins the numbers of their tokens.

Denil et al. 2014, "Extraction of Salient Sentences from Labelled Documents"; Sundararajan, Taly and Yan 2017,
"Axiomatic Attribution for Deep Networks".
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.gradient_pass import GradientPass
from regard.checks import is_whole
from regard.display.answer import Answer, Read
from regard.errors import RegardError
from regard.explain.causes.outcomes import AnyTrace, Outcome, number_of
from regard.explain.causes.word_sums import Join, cause_scores_by_word
from regard.explain.frames import Row
from regard.explain.wording import signed
from regard.models.gradient_runs import gradient_run
from regard.questions.attribution import panels, sentences
from regard.text.quoting import quoted
from regard.text.tokens import Token
from regard.text.word_pieces import spelling, words
from regard.text.words import only_word

if TYPE_CHECKING:
    from regard.models.model import Model

Method = Literal["gradient x input", "integrated gradients"]
METHODS = ("gradient x input", "integrated gradients")
STEPS, MOST_STEPS = 32, 128  # of the integral: as many first, then twice as many until the gap is small, to the most


@dataclass(frozen=True, eq=False, repr=False)
class TokenAttribution(Answer):
    """What each token brought to an outcome. scores: (L,) in float64, of an encoder-decoder the source's, then the
    target's tokens. norms: (L,), the length of what each score is the sum of. outcome: of the text. baseline: of the
    baseline, None where there is none. gap: |sum of the scores - (outcome - baseline)|, None without a baseline. steps:
    of the integral. sides: how many tokens each text has. unit: whether what is shown is of tokens or of words.
    """

    format: ClassVar[str] = "regard attribute"
    findings = sentences.of_tokens
    panels = panels.of_tokens
    exactness = sentences.exactness_of_tokens

    method: Method
    outcome_name: str
    outcome: float
    baseline: float | None
    gap: float | None
    steps: int
    scores: Float[Tensor, " L"]
    norms: Float[Tensor, " L"]
    tokens: tuple[Token, ...]
    texts: tuple[str, ...]
    sides: tuple[int, ...]
    unit: Literal["token", "word"] = field(default="token", kw_only=True)

    def word(self, word: str) -> float:
        """Add up the scores of a word's tokens. Of an encoder-decoder, of the source's.

        Raises:
            RegardError: the word is not in the text, or occurs several times.
        """
        own = self.tokens[: self.sides[0]]
        return float(self.scores[list(only_word(self.texts[0], own, word).tokens)].sum())

    def words(self, join: Join = "sum", of: Literal["scores", "norms"] = "scores") -> list[tuple[str, float]]:
        """List each word and its number, in order; of an encoder-decoder the source's words, then the target's.

        join: how the numbers of a word's tokens become one: their "sum", "mean", or the one of the largest absolute
        value, "absmax". of: which numbers.

        Raises:
            RegardError: there are no such numbers, or no such way to join them.
        """
        if of not in ("scores", "norms"):
            raise RegardError(f"of: given {of!r}, needs 'scores' or 'norms'")
        found: list[tuple[str, float]] = []
        for first, count in self._spans():
            tokens, own = self.tokens[first : first + count], getattr(self, of)[first : first + count]
            groups = words(tokens)
            named = [spelling(tokens, group) for group in groups]
            found += zip(named, cause_scores_by_word(own, groups, join).tolist(), strict=True)
        return found

    def by(self, by: Literal["token", "word"] = "token") -> list[tuple[str, float]]:
        """Each token's or word's name and score, the largest absolute numbers first; a word's sums up its tokens'.

        Raises:
            RegardError: something else is asked for.
        """
        if by not in ("token", "word"):
            raise RegardError(f"by: given {by!r}, needs 'token' or 'word'")
        found: list[tuple[str, float]] = []
        for side, (first, count) in enumerate(self._spans()):
            of = f" of the {('source', 'target')[side]}" if len(self.sides) > 1 else ""
            tokens, own = self.tokens[first : first + count], self.scores[first : first + count]
            groups = words(tokens) if by == "word" else [range(n, n + 1) for n in range(count)]
            for group, score in zip(groups, cause_scores_by_word(own, groups).tolist(), strict=True):
                name = spelling(tokens, group) if by == "word" else tokens[group[0]].text.strip()
                found.append((f"{quoted(name)} ({group[0]}){of}", score))
        return sorted(found, key=lambda each: -abs(each[1]))

    def rows(self) -> list[Row]:
        """List one row a token: side (of an encoder-decoder), token, text, score, norm; of words: word, score."""
        if self.unit == "word":
            return [{"word": name, "score": score} for name, score in self.words()]
        return self._token_rows()

    def title(self) -> str:
        """Say what the tokens bring something to."""
        return f"What each {self.unit} brings to the {self.outcome_name} ({signed(self.outcome)})"

    def data(self) -> dict[str, object]:
        """Give the outcome, and the scores of tokens and of words."""
        words = [{"word": name, "score": score} for name, score in self.words()]
        own: dict[str, Any] = {"method": self.method.replace(" ", "-"), "outcome": self.outcome_name}
        own |= {"value": self.outcome, "baseline": self.baseline, "gap": self.gap, "steps": self.steps}
        return own | {"tokens": self._token_rows(), "words": words}

    def _token_rows(self) -> list[Row]:
        found: list[Row] = []
        for side, (first, count) in enumerate(self._spans()):
            for n in range(count):
                row: Row = {"side": ("source", "target")[side]} if len(self.sides) > 1 else {}
                row |= {"token": n, "text": self.tokens[first + n].text, "score": float(self.scores[first + n])}
                found.append(row | {"norm": float(self.norms[first + n])})
        return found

    def _spans(self) -> list[tuple[int, int]]:
        """(first, count) of each text's tokens."""
        return list(zip(np.cumsum([0, *self.sides]).tolist(), self.sides, strict=False))


def attribute_to_tokens(
    model: "Model",
    trace: AnyTrace,
    outcome: Outcome,
    *,
    method: Method = "integrated gradients",
    steps: int | None = None,
    baseline: Literal["mean", "zero"] | int = "mean",
) -> TokenAttribution:
    """Attribute an outcome of a trace to its tokens, by gradients.

    Args:
        trace: of this model, without interventions.
        outcome: one that gives a tensor, as those of `outcomes` do.
        steps: of the integral, at Gauss and Legendre's places; of integrated gradients. None for `STEPS`, and where the
            gap is more than 5 % of what the scores sum to, for twice as many until it is not,
            `MOST_STEPS` at most; what is returned has the smallest gap.
        baseline: of integrated gradients, what stands at every token: the vocabulary's "mean" embedding, "zero", or the
            id of a token. Where a norm of root mean squares comes first, as in Llama, f jumps at zero: see the gap.

    Raises:
        RegardError: another method, an outcome that is no tensor, or a model whose embeddings cannot be exchanged.
    """
    if method not in METHODS:
        raise RegardError(f"method: given {method!r}, needs one of {', '.join(map(repr, METHODS))}")
    if steps is not None and (not is_whole(steps) or steps < 1):
        raise RegardError(f"steps: given {steps!r}, needs a whole number, 1 or more")
    done, own = gradient_run(model, trace)
    value = number_of(outcome, own)
    inputs = [each.detach() for each in done.embeddings]
    if method == "gradient x input":
        found = _attribution_sums_by_token(inputs, done.gradients(value, done.embeddings))
        return _attribution(trace, method, outcome, float(value.detach()), None, 0, found)
    starts = [_start(model, baseline, each) for each in inputs]

    def between(t: float) -> tuple[GradientPass, Float[Tensor, ""]]:
        """The pass and the outcome at a place on the way from the baseline, t = 0, to the text, 1."""
        part, there = gradient_run(model, trace, lambda n, _: starts[n] + t * (inputs[n] - starts[n]))
        return part, number_of(outcome, there)

    below = float(between(0.0)[1].detach())

    def integrated(count: int) -> TokenAttribution:
        """The attribution with so many steps."""
        places, weights = np.polynomial.legendre.leggauss(count)
        means = [torch.zeros_like(each, dtype=torch.float64) for each in inputs]
        for place, weight in zip((places + 1) / 2, weights / 2, strict=True):
            part, number = between(float(place))
            for mean, slope in zip(means, part.gradients(number, part.embeddings), strict=True):
                mean += float(weight) * slope.double()
        sums = _attribution_sums_by_token([x - b for x, b in zip(inputs, starts, strict=True)], means)
        return _attribution(trace, method, outcome, float(value.detach()), below, count, sums)

    count = STEPS if steps is None else steps
    best = integrated(count)
    while steps is None and sentences.too_far_apart(best) and count < MOST_STEPS:
        count *= 2
        more = integrated(count)
        best = min(best, more, key=lambda each: each.gap or 0.0)
    return best


def _attribution(
    trace: AnyTrace,
    method: Method,
    outcome: Outcome,
    value: float,
    baseline: float | None,
    steps: int,
    found: tuple[Float[Tensor, " L"], Float[Tensor, " L"]],
) -> TokenAttribution:
    """The scores with what they are of, and how far they are from what they have to sum to."""
    scores, norms = found
    gap = None if baseline is None else abs(float(scores.sum()) - (value - baseline))
    tokens = tuple(token for side in trace.sides for token in side.tokens)
    counts = tuple(len(side.tokens) for side in trace.sides)
    texts = tuple(side.text for side in trace.sides)
    return TokenAttribution(
        method, outcome.name, value, baseline, gap, steps, scores, norms, tokens, texts, counts, about=Read.of(trace)
    )


def _attribution_sums_by_token(
    inputs: list[Tensor], slopes: list[Tensor]
) -> tuple[Float[Tensor, " L"], Float[Tensor, " L"]]:
    """Each token's input times the gradient: its sum over components, and its length."""
    products = [(x.double() * g.double()).cpu() for x, g in zip(inputs, slopes, strict=True)]
    return torch.cat([each.sum(-1) for each in products]), torch.cat([each.norm(dim=-1) for each in products])


def _start(model: "Model", baseline: Literal["mean", "zero"] | int, like: Float[Tensor, "L W"]) -> Float[Tensor, "L W"]:
    """The baseline: the same learned embedding for every token."""
    if baseline == "zero":
        return torch.zeros_like(like)
    table = model.model.get_input_embeddings()
    count = table.num_embeddings
    if baseline != "mean" and not (is_whole(baseline) and 0 <= baseline < count):
        raise RegardError(f"baseline: given {baseline!r}, needs 'mean', 'zero' or one of the ids 0 to {count - 1}")
    with torch.no_grad():
        ids = torch.arange(count) if baseline == "mean" else torch.tensor([baseline])
        return table(ids.to(like.device)).mean(0).to(like).expand_as(like)
