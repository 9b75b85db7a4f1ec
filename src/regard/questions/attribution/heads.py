"""Attribute an outcome to all heads by one gradient, to first order.

With z a head's output (L, E), before W_O, the head's score is

    Σ_i Σ_e z[i, e] · ∂outcome/∂z[i, e]

which is gradient × output (Michel, Levy and Neubig 2019, "Are Sixteen Heads Really Better than One?", who take its
absolute value over a corpus). Its negative estimates the effect of ablating the head (attribution patching, Nanda
2023). It splits exactly by source token if the weights are frozen. A zero output is far from the actual output, so the
estimates rank heads better than they measure them: see docs/attribution.md.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.call_ids import CallId
from regard.display.answer import Answer, Read
from regard.explain.causes.outcomes import AnyTrace, Outcome, number_of
from regard.explain.frames import Row
from regard.models.model import Model
from regard.models.readout import gradient_run
from regard.questions.attribution import panels, sentences
from regard.text.tokens import Token


@dataclass(frozen=True, eq=False, repr=False)
class HeadAttribution(Answer):
    """The estimated contribution of each head to an outcome.

    outcome, outcome_name: its value for the text, and its name. calls: attention calls, in order. scores: for each
    call, its heads' contributions, in float64. sources: for each call, the contribution of every head from every source
    token, which sum to the scores. tokens: for each call, its source tokens.
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

    @property
    def call_names(self) -> list[str]:
        """Name each attention call: "layer 23", with the stack of an encoder-decoder."""
        stacks = {None: "", "encoder": "encoder ", "decoder": "decoder ", "cross": "cross-attention "}
        return [f"{stacks[call.part]}layer {call.layer}{f', call {call.nth}' * bool(call.nth)}" for call in self.calls]

    def by(self) -> list[tuple[str, float]]:
        """Return each head's name and number, the largest absolute numbers first."""
        names = dict(zip(self.calls, self.call_names, strict=True))
        return [(f"{names[call]}, head {head}", score) for call, head, score in self.best(sum(map(len, self.scores)))]

    def rows(self) -> list[Row]:
        """List one row per head: part (of an encoder-decoder), layer, call (if a layer makes several), head, score."""
        several = any(call.nth for call in self.calls)
        found: list[Row] = []
        for call, scores in zip(self.calls, self.scores, strict=True):
            for head, score in enumerate(scores.tolist()):
                row: Row = {} if call.part is None else {"part": call.part}
                row |= {"layer": call.layer} | ({"call": call.nth} if several else {})
                found.append(row | {"head": head, "score": score})
        return found

    def title(self) -> str:
        """Name the outcome, with its value."""
        return f"Estimated contribution of each head to the {self.outcome_name} ({sentences.plain(self.outcome)})"

    def exactness(self) -> list[str]:
        """Say that the numbers are estimates."""
        return ["One gradient estimates all contributions to first order. Ablate a head to measure its effect."]

    def data(self) -> dict[str, object]:
        """Return the outcome, and every head's contribution, in total and from every token."""
        sources = [{**asdict(call), "heads": each} for call, each in zip(self.calls, self.sources, strict=True)]
        own = {"method": "gradient-x-input", "outcome": self.outcome_name, "value": self.outcome}
        return {**own, "heads": self.rows(), "sources": sources}


def attribute_to_heads(model: Model, trace: AnyTrace, outcome: Outcome) -> HeadAttribution:
    """Attribute an outcome to all heads, by one gradient.

    trace: of this model, without interventions. outcome: one that gives a tensor, such as those of `regard.outcomes`.

    Raises:
        RegardError: an outcome that is no tensor, or heads that are not seen.
    """
    done, own = gradient_run(model, trace, heads=True)
    value = number_of(outcome, own)
    parts = [head.output for head in done.heads] + [head.value for head in done.heads]
    products = [z.detach().double() * g.double() for z, g in zip(parts, done.gradients(value, parts), strict=True)]
    scores = tuple(product[0].sum((1, 2)).cpu() for product in products[: len(done.heads)])
    sources = tuple(product[0].sum(2).cpu() for product in products[len(done.heads) :])
    of = {None: trace.sides[0], "encoder": trace.sides[0], "cross": trace.sides[0], "decoder": trace.sides[-1]}
    tokens = tuple(of[head.call.part].tokens for head in done.heads)
    calls, about = tuple(head.call for head in done.heads), Read.of(trace)
    return HeadAttribution(outcome.name, float(value.detach()), calls, scores, sources, tokens, about=about)
