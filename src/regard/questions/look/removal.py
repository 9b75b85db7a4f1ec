"""Remove regions of an image, run the model again for each, and measure the effect.

The outcome is the next token's log probability. Without a text it is the cosine of [CLS], or of the mean of all
patches, with its original vector. The control is the mean over the other regions, each about as large.
"""

from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from regard.explain.causes.ablation_effect import spearman
from regard.images.patches import Fill
from regard.trace.trace import Trace

MOST = 4  # regions of a row, and of a column


@dataclass(frozen=True)
class Removal:
    """What removing each region, [row][column], does to an outcome: a log probability in nats, or a cosine.

    before, after: the outcome as it is, and without a region. heat: a region's part of what all patches get. patches:
    rows and columns of them.
    """

    fill: Fill
    unit: str
    before: float
    after: Float[Tensor, "rows columns"]
    heat: Float[Tensor, "rows columns"]
    patches: tuple[int, int]

    @property
    def changes(self) -> Float[Tensor, "rows columns"]:
        """Compute how much less the outcome is without each region."""
        return self.before - self.after

    def numbers(self, who: str, token: str) -> dict[str, Any]:
        """Collect what sentences name. who: whose vector is compared without a text. token: the most likely token."""
        changes, heat, nats = self.changes.flatten(), self.heat.flatten(), self.unit == "nats"
        outcomes = torch.cat([torch.tensor([self.before]), self.after.flatten()])
        before, *after = (outcomes.exp() if nats else outcomes).tolist()
        best = int(changes.argmax())
        numbers = {
            "outcome": f"the probability of {token}" if nats else f"the cosine of {who} with its original vector",
            "region": self._called(best), "falls": float(changes[best]) > 0, "before": before, "without": after[best],
            "mean": (sum(after) - after[best]) / max(1, len(after) - 1),
        }  # fmt: skip
        if bool(heat.any()):
            agreement = spearman(changes.tolist(), heat.tolist())
            numbers |= {"heaviest": self._called(int(heat.argmax())), "agreement": agreement}
        return numbers

    def _called(self, region: int) -> str:
        places = zip(divmod(region, self.after.shape[1]), map(_cuts, self.patches), strict=True)
        (top, bottom), (left, right) = [(cuts[n], cuts[n + 1] - 1) for n, cuts in places]
        return f"patch {top},{left}" if (top, left) == (bottom, right) else f"patches {top},{left}–{bottom},{right}"


def removal(model: Any, trace: Trace, heat: Float[Tensor, "rows columns"], query: int | None, fill: Fill) -> Removal:
    """Run a trace's picture again without each of at most MOST × MOST regions, and measure what changes.

    model: a `regard.Model`. query: whose state is compared without a text, None for the mean of all patches.
    """
    first, texted = getattr(trace.patches, "first", 0), bool(trace.text) and trace.logits is not None

    def state(run: Any) -> Tensor:
        if texted:
            return run.logits[-1].double().log_softmax(-1)
        last = run.last_hidden_state
        return last[first:].double().mean(0) if query is None else last[query].double()

    def outcome(run: Trace) -> float:
        return float(state(run)[state(trace).argmax()] if texted else cosine_similarity(state(run), state(trace), 0))

    rows, columns = ([slice(*each) for each in pairwise(_cuts(whole))] for whole in heat.shape)
    regions, shape = list(product(rows, columns)), (len(rows), len(columns))
    after = torch.tensor([outcome(run) for run in model.without(trace, regions, fill)], dtype=torch.float64)
    parts = torch.stack([heat[each].sum() for each in regions]) / (heat.sum() or 1)
    unit = "nats" if texted else "1 − cosine"
    return Removal(fill, unit, outcome(trace), after.view(shape), parts.view(shape), (heat.shape[0], heat.shape[1]))


def _cuts(whole: int) -> list[int]:
    parts = min(MOST, whole)
    return [n * whole // parts for n in range(parts + 1)]
