"""State in a few sentences how a training run went: what the loss fell to, held out and not, and what it means."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

Log = Sequence[
    Mapping[str, int | float | None]
]  # an entry an update: "step", "loss", and "validation" where it was measured

SAME = 0.02  # losses in nats that differ by less are called about equal
PART = 50  # a mean at either end is over this part of all updates
MOST = 8  # evaluations that a table has


@dataclass(frozen=True)
class Evaluation:
    """A held-out loss, and the mean of the updates' own losses since the one before."""

    step: int
    loss: float
    validation: float


def training_findings(log: Log, vocabulary: int, *, smoothing: float = 0.0) -> list[str]:
    """Compose the sentences. vocabulary: how many tokens there are; smoothing: of the labels, in the loss."""
    losses = [each["loss"] for each in log]
    known = [loss for loss in losses if loss is not None and math.isfinite(loss)]
    if not known:
        return []
    size = max(1, len(known) // PART)
    first, last = sum(known[:size]) / size, sum(known[-size:]) / size
    said = (_fell(log, first, last, size, smoothing), _chance(last, vocabulary), *_held(log, last))
    return [sentence for sentence in said if sentence]


def evaluations(log: Log) -> list[Evaluation]:
    """Every held-out loss in order, with what the updates before it had."""
    found: list[Evaluation] = []
    since: list[float] = []
    for each in log:
        loss, validation, step = each["loss"], each["validation"], each["step"]
        if loss is not None:
            since.append(loss)
        if validation is not None and since and step is not None:
            found.append(Evaluation(int(step), sum(since) / len(since), validation))
            since = []
    return found


def some_evaluations(found: Sequence[Evaluation]) -> list[Evaluation]:
    """At most MOST of the evaluations, evenly, the first and the last among them."""
    count = len(found)
    places = range(count) if count <= MOST else [round(n * (count - 1) / (MOST - 1)) for n in range(MOST)]
    return [found[n] for n in places]


def _fell(log: Log, first: float, last: float, size: int, smoothing: float) -> str:
    mean = f", each a mean of {size} updates" if size > 1 else ""
    among = "" if smoothing else f": as unsure as among {math.exp(last):.1f} equally likely tokens" if last < 20 else ""
    begin, end = (f"{each['step']:.0f}" for each in (log[0], log[-1]))
    if len(log) == 1:
        return f"After one update the loss is {last:.2f} nats a token{among}."
    how = "stayed at about" if abs(first - last) < SAME else "fell from" if last < first else "rose from"
    to = f" {first:.2f}" if how.startswith("stayed") else f" {first:.2f} to {last:.2f}"
    return f"From step {begin} to {end} the loss {how}{to} nats a token{mean}{among}."


def _chance(last: float, vocabulary: int) -> str:
    chance = math.log(vocabulary) if vocabulary > 1 else 0.0
    if not chance:
        return ""
    says = "the run is no better than that" if last > chance - SAME else f"the run is {chance - last:.2f} below it"
    return f"Guessing evenly among its {vocabulary:,} tokens would be {chance:.2f}; {says}."


def _held(log: Log, last: float) -> list[str]:
    """What held-out losses say: whether it still learns, or has begun to learn its texts by heart."""
    found = evaluations(log)
    if not found:
        return []
    best, end = min(found, key=lambda each: each.validation), found[-1]
    if len(found) == 1:
        says = f"Held out the loss is {end.validation:.2f} at step {end.step}."
    elif end.validation - best.validation >= SAME:
        says = (
            f"Held out it was smallest at step {best.step} ({best.validation:.2f}) and is {end.validation:.2f} at step "
            f"{end.step}: since then it {'learned its own texts, not others' if end.loss < best.loss else 'rose'}."
        )
    elif len(found) > 2 and best is end and found[-2].validation - end.validation >= SAME:
        says = (
            f"Held out it is smallest at its last evaluation, {end.validation:.2f} at step {end.step}: still falling."
        )
    else:
        smallest = f"smallest was {best.validation:.2f} at step {best.step}"
        says = f"Held out it is {end.validation:.2f} at step {end.step}; {smallest}."
    gap = end.validation - last
    apart = f"On texts held out the loss is {gap:.2f} larger than on those it trained on." if gap >= 5 * SAME else ""
    return [says, apart]
