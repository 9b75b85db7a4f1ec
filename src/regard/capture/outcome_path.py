"""Split a number that a pass ends with (a logit, a difference of two, a cosine) into what was written into its stream.

All is as in `score_path`, up to the last hidden state or the logits: with the statistics of every norm held fixed, the
final one's too, they are a linear function of what was written.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.score_path import Side, SideParts, run_linearly, split_rows
from regard.capture.session import Session
from regard.errors import RegardError
from regard.text.tokens import Encoded


@dataclass(frozen=True, eq=False)
class AttributionTarget:
    """What is split: logits[token], logits[token] - logits[against], or (token None) the cosine to a direction."""

    token: int | None = None
    against: int | None = None
    direction: Float[Tensor, " M"] | None = None


def outcome_path(
    session: Session, source: Encoded, target: Encoded | None, outcome: AttributionTarget, tokens: Sequence[int]
) -> SideParts:
    """Run the text, and split the mean outcome of some tokens: vectors of one component.

    Of a cosine the length of the mean state is held fixed, as a norm's statistics are.
    """
    name = f"attribution in {session.name}"
    if session.reports_weights:
        raise RegardError(f"{name}: its attention does not go through regard, so no exact split is known")
    rows, length = list(tokens), len((source if target is None else target).tokens)
    logits_of = rows if outcome.token is not None else rows[-1:]  # all of them would be (L, V)
    done, logits, last = run_linearly(session, source, target, None, logits_of)
    states = last.get("last_hidden_state")
    if outcome.token is None and (states is None or states.shape[1] != length):
        done, logits, last = run_linearly(session, source, target, None)  # it is seen where it enters the head, in full
    if done.spoiled is not None:
        raise RegardError(f"{name}: {done.spoiled!r} writes into the residual stream, so no exact split is known")
    if outcome.token is not None:
        ends = logits
        if ends is not None and ends.ndim == 2:  # of the whole text: one row, in which every token may have a part
            rows, ends = [0], ends[:, None]
        elif ends is not None and ends.shape[1] == len(rows):
            rows = list(range(len(rows)))
        if ends is None:
            raise RegardError(f"{name}: it has no language head, so no logits: give toward=, a direction")
    else:
        ends = last.get("last_hidden_state")
        if ends is None:
            raise RegardError(f"{name}: its last hidden state was not seen")
    with torch.enable_grad():
        values = _outcome_at_rows(ends[0], outcome, rows)[:, None]
    sides: tuple[Side | None, ...] = ("encoder", "decoder") if session.pairs else (None,)
    what = f"{name}: the {'logit' if outcome.token is not None else 'last hidden state'}"
    reason = done.reason(ends if outcome.token is None or logits is None else logits)
    return split_rows(done, values, reason, tuple(tokens), sides, what, rows)


def _outcome_at_rows(ends: Float[Tensor, "L K"], outcome: AttributionTarget, rows: list[int]) -> Float[Tensor, " L"]:
    """The outcome at every row; of a cosine as some of them make it together."""
    if outcome.token is not None:
        return ends[:, outcome.token] - (0 if outcome.against is None else ends[:, outcome.against])
    assert outcome.direction is not None
    direction = outcome.direction.to(ends)
    length = ends.detach()[rows].mean(0).norm() * direction.norm()
    return ends @ (direction / length)
