"""Attribute an outcome to heads by one gradient: what each brought, to the first order, all heads at once.

With z a head's output (L, E), before W_O, and b what it is compared with, the head is given

    Σ_i Σ_e (z - b)[i, e] · ∂outcome/∂z[i, e]

which is, with its sign turned, an estimate of what putting b in its place would do to the outcome: attribution patching
(Nanda 2023) towards an ablated head (b = 0), or towards another run; of one head at a time, with all that follows from
it. With b = 0 that is gradient x output (Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", who
take its absolute value over a corpus), and it splits exactly by source token, the weights held as they were. Zero is
far from what heads give, so that the estimates rank heads better than they measure them: docs/attribution.md has how
well they go with what ablating does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.call_ids import CallId
from regard.capture.interventions.names import Part
from regard.display.answer import Answer, Read
from regard.errors import RegardError
from regard.explain.causes.outcomes import AnyTrace, Outcome, number_of
from regard.explain.frames import Row
from regard.explain.wording import signed
from regard.models.gradient_runs import gradient_run
from regard.questions.attribution import panels, sentences
from regard.text.tokens import Token, shortened
from regard.trace.trace import PairTrace, Trace

if TYPE_CHECKING:
    from regard.models.model import Model

Baseline = Literal["zero", "mean"] | Trace | PairTrace


@dataclass(frozen=True, eq=False, repr=False)
class HeadAttribution(Answer):
    """What each head brought to an outcome. calls: attention calls, in order; scores: of each, its heads', in float64.

    outcome: of the text, and outcome_name what it is. baseline: what heads are compared with, in words. sources: of
    each call what every head brought from every source token; they sum to the scores; None for another baseline than
    zero. tokens: of each call its source tokens.
    """

    format: ClassVar[str] = "regard attribute"
    findings = sentences.of_heads
    panels = panels.of_heads

    outcome_name: str
    outcome: float
    baseline: str
    calls: tuple[CallId, ...]
    scores: tuple[Float[Tensor, " _"], ...]
    sources: tuple[Float[Tensor, "_ _"], ...] | None
    tokens: tuple[Sequence[Token], ...]

    def score(self, layer: int, head: int, *, part: Part | None = None) -> float:
        """Compute the number of one head.

        Raises:
            RegardError: there is no such head.
        """
        return float(self.scores[self._call(layer, head, part)][head])

    def from_tokens(self, layer: int, head: int, *, part: Part | None = None) -> Float[Tensor, " S"]:
        """Return what a head brought from each source token.

        Raises:
            RegardError: there is no such head, or the baseline is not zero.
        """
        if self.sources is None:
            raise RegardError(
                f'head_gradients: compared with {self.baseline}, heads do not split: baseline="zero" does'
            )
        return self.sources[self._call(layer, head, part)][head]

    def best(self, count: int = 10) -> list[tuple[CallId, int, float]]:
        """Find the heads of the largest absolute numbers: (call, head, number)."""
        every = [
            (call, head, float(score))
            for call, scores in zip(self.calls, self.scores, strict=True)
            for head, score in enumerate(scores)
        ]
        return sorted(every, key=lambda each: -abs(each[2]))[:count]

    def by(self) -> list[tuple[str, float]]:
        """Return each head's name and number, the largest absolute numbers first."""
        return [
            (sentences.named_head(call, head), score) for call, head, score in self.best(sum(map(len, self.scores)))
        ]

    def rows(self) -> list[Row]:
        """List one row a head: part (of an encoder-decoder), layer, call (where a layer makes several), head, score."""
        several = any(call.nth for call in self.calls)
        found: list[Row] = []
        for call, scores in zip(self.calls, self.scores, strict=True):
            for head, score in enumerate(scores.tolist()):
                row: Row = {} if call.part is None else {"part": call.part}
                row |= {"layer": call.layer} | ({"call": call.nth} if several else {})
                found.append(row | {"head": head, "score": score})
        return found

    def title(self) -> str:
        """Say what the heads bring something to."""
        return f"What each head brings to the {self.outcome_name} ({signed(self.outcome)}), to the first order"

    def exactness(self) -> list[str]:
        """Say how exact the numbers are."""
        return ["All numbers come from one gradient: they are exact where the outcome is linear in a head's output."]

    def data(self) -> dict[str, object]:
        """Give the outcome, every head's number, and what it took from every token."""
        own: dict[str, Any] = {"method": "gradient-x-input", "outcome": self.outcome_name, "value": self.outcome}
        calls = zip(self.calls, self.sources or (), strict=False)
        sources = self.sources and [{**asdict(call), "heads": each} for call, each in calls]
        return own | {"baseline": self.baseline, "heads": self.rows(), "sources": sources}

    def _call(self, layer: int, head: int, part: str | None) -> int:
        found = [n for n, call in enumerate(self.calls) if (call.layer, call.part) == (layer, part)]
        if not found or not 0 <= head < len(self.scores[found[0]]):
            where = "" if part is None else f" of part {part!r}"
            raise RegardError(f"head_gradients: there is no layer {layer} with a head {head}{where}")
        return found[0]


def attribute_to_heads(
    model: "Model", trace: AnyTrace, outcome: Outcome, *, baseline: Baseline = "zero"
) -> HeadAttribution:
    """Attribute an outcome of a trace to the model's heads, by one gradient.

    Args:
        trace: of this model, without interventions.
        outcome: one that gives a tensor, as those of `outcomes` do.
        baseline: what each head is compared with: "zero", its "mean" output over the text's tokens, or what it gave in
            another trace, of as many tokens.

    Raises:
        RegardError: another baseline, an outcome that is no tensor, or a model whose heads or embeddings are not seen.
    """
    if not isinstance(baseline, (Trace, PairTrace)) and baseline not in ("zero", "mean"):
        raise RegardError(f"baseline: given {baseline!r:.60}, needs 'zero', 'mean' or a trace of the same model")
    done, own = gradient_run(model, trace, heads=True)
    value = number_of(outcome, own)
    outputs = [each.output for each in done.heads]
    values = [each.value for each in done.heads] if baseline == "zero" else []
    slopes = done.gradients(value, [*outputs, *values])
    others = _other_attributed_states(model, trace, baseline, outputs)
    scores = tuple(
        ((z.detach() - b).double() * g.double())[0].sum((1, 2)).cpu()
        for z, b, g in zip(outputs, others, slopes, strict=False)
    )
    sources = tuple(
        (v.detach().double() * g.double())[0].sum(2).cpu() for v, g in zip(values, slopes[len(outputs) :], strict=True)
    )
    sides: Mapping[str | None, Trace] = {"encoder": trace.sides[0], "decoder": trace.sides[-1], None: trace.sides[0]}
    tokens = tuple(sides["encoder" if each.call.part == "cross" else each.call.part].tokens for each in done.heads)
    calls = tuple(each.call for each in done.heads)
    said = baseline if isinstance(baseline, str) else shortened(baseline.sides[0].text)
    return HeadAttribution(
        outcome.name, float(value.detach()), said, calls, scores, sources if baseline == "zero" else None, tokens,
        about=Read.of(trace),
    )  # fmt: skip


def _other_attributed_states(
    model: "Model", trace: AnyTrace, baseline: Baseline, outputs: list[Tensor]
) -> list[Tensor]:
    """What stands in the place of each call's outputs."""
    if baseline == "zero":
        return [torch.zeros((), dtype=each.dtype, device=each.device) for each in outputs]
    if baseline == "mean":
        return [each.detach().mean(2, keepdim=True) for each in outputs]
    assert isinstance(baseline, (Trace, PairTrace))
    there, _ = gradient_run(model, baseline, heads=True)
    found = [each.output.detach() for each in there.heads]
    if [each.shape for each in found] != [each.shape for each in outputs]:
        counts = [", ".join(str(len(side.tokens)) for side in each.sides) for each in (trace, baseline)]
        raise RegardError(f"baseline: its trace has {counts[1]} tokens, this one {counts[0]}: as many are needed")
    return found
