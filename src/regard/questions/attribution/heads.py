"""Attribute an outcome to heads by one gradient: what each brought, to the first order, all heads at once.

With z a head's output (L, E), before W_O, the head is given

    Σ_i Σ_e z[i, e] · ∂outcome/∂z[i, e]

which is gradient x output (Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", who take its
absolute value over a corpus). With its sign turned it estimates what ablating the head would do to the outcome
(attribution patching, Nanda 2023). It splits exactly by source token, the weights held as they were. Zero is far from
what heads give, so the estimates rank heads better than they measure them: docs/attribution.md has how well.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.call_ids import CallId
from regard.display.answer import Answer, Read
from regard.explain.causes.outcomes import AnyTrace, Outcome, number_of
from regard.explain.frames import Row
from regard.explain.wording import signed
from regard.models.gradient_runs import gradient_run
from regard.questions.attribution import panels, sentences
from regard.text.tokens import Token

if TYPE_CHECKING:
    from regard.models.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class HeadAttribution(Answer):
    """What each head brought to an outcome. calls: attention calls, in order; scores: of each, its heads', in float64.

    outcome: of the text, and outcome_name what it is. sources: of each call what every head brought from every source
    token; they sum to the scores. tokens: of each call its source tokens.
    """

    format: ClassVar[str] = "regard attribute"
    findings = sentences.of_heads
    panels = panels.of_heads

    outcome_name: str
    outcome: float
    calls: tuple[CallId, ...]
    scores: tuple[Float[Tensor, " _"], ...]
    sources: tuple[Float[Tensor, "_ _"], ...]
    tokens: tuple[Sequence[Token], ...]

    def best(self, count: int = 10) -> list[tuple[CallId, int, float]]:
        """Find the heads of the largest absolute numbers: (call, head, number)."""
        every = [
            (call, head, score)
            for call, scores in zip(self.calls, self.scores, strict=True)
            for head, score in enumerate(scores.tolist())
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
        sources = [{**asdict(call), "heads": each} for call, each in zip(self.calls, self.sources, strict=True)]
        own = {"method": "gradient-x-input", "outcome": self.outcome_name, "value": self.outcome}
        return {**own, "heads": self.rows(), "sources": sources}


def attribute_to_heads(model: "Model", trace: AnyTrace, outcome: Outcome) -> HeadAttribution:
    """Attribute an outcome, one that gives a tensor, to the heads of a trace without interventions."""
    done, own = gradient_run(model, trace, heads=True)
    value = number_of(outcome, own)
    parts = [each.output for each in done.heads] + [each.value for each in done.heads]
    products = [z.detach().double() * g.double() for z, g in zip(parts, done.gradients(value, parts), strict=True)]
    scores = tuple(each[0].sum((1, 2)).cpu() for each in products[: len(done.heads)])
    sources = tuple(each[0].sum(2).cpu() for each in products[len(done.heads) :])
    of = {None: trace.sides[0], "encoder": trace.sides[0], "cross": trace.sides[0], "decoder": trace.sides[-1]}
    tokens = tuple(of[each.call.part].tokens for each in done.heads)
    calls, about = tuple(each.call for each in done.heads), Read.of(trace)
    return HeadAttribution(outcome.name, float(value.detach()), calls, scores, sources, tokens, about=about)
