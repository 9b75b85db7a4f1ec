"""Say in sentences what made an outcome: of what was written directly, of tokens and of heads by gradients."""

from collections.abc import Sequence
from typing import Literal

from regard.explain.causes.attribution import Attribution
from regard.explain.causes.gradients import TokenAttribution
from regard.explain.causes.head_gradients import HeadAttribution, named_head
from regard.explain.findings.score_sources import signed
from regard.explain.findings.wording import capital, listed

NAMED = 3  # parts that a sentence names at most
LEAST = 0.05  # of the largest: parts below it are not worth a name
APART = 0.05  # of what is to be explained: a gap above it is too much

Attributed = Attribution | TokenAttribution | HeadAttribution


def attribution_findings(found: Attributed, by: Literal["token", "word"] = "token") -> list[str]:
    """What the outcome is, and what made it. by: whether tokens are named, or words."""
    if isinstance(found, Attribution):
        return _direct(found, words=by == "word")
    return _tokens(found, by) if isinstance(found, TokenAttribution) else _heads(found)


def _direct(found: Attribution, *, words: bool) -> list[str]:
    said = [f"The {found.outcome} is {signed(found.value)}: the sum of what was written there directly."]
    said += _most("Of all heads and layers", found.by())
    carried = [
        (name.removeprefix("attention from "), n) for name, n in found.by("source", words=words) if "from “" in name
    ]
    said += _most("By attention, over all heads and layers,", carried, "came", "from ")
    kinds = [f"{name} {signed(added)}" for name, added in found.by("kind")]
    return [*said, capital(f"{listed(kinds)}, in all.")]


def _tokens(found: TokenAttribution, by: Literal["token", "word"]) -> list[str]:
    method = found.method if found.baseline is None else f"{found.method}, {found.steps} steps"
    first = f"The {found.outcome_name} is {signed(found.outcome)}"
    if found.baseline is not None:
        first += f", and {signed(found.baseline)} where the baseline stands at every token"
    said = [f"{first}.", *_most(f"By {method},", found.by(by))]
    if found.gap is None or found.baseline is None:
        return [*said, "Gradient x input follows the slope at this text alone: the scores need not sum to the outcome."]
    due = found.outcome - found.baseline
    sums = f"The scores sum to {signed(float(found.scores.sum()))}, where {signed(due)} is to be explained"
    if found.gap > APART * abs(due):
        return [*said, f"{sums}: too far apart for single scores to be believed, more steps may help."]
    return [*said, f"{sums}: a gap of {found.gap:.1e}."]


def _heads(found: HeadAttribution) -> list[str]:
    than = {"zero": "an ablated one", "mean": "its mean output"}.get(found.baseline, f"its output in {found.baseline}")
    said = [f"The {found.outcome_name} is {signed(found.outcome)}."]
    said += _most(f"Each head beside {than}, to the first order,", found.by())
    if found.sources is not None and found.calls:
        call, head, score = found.best(1)[0]
        n = found.calls.index(call)
        own = found.sources[n][head]
        most = int((own if score >= 0 else -own).argmax())
        text = found.tokens[n][most].text.strip()
        name = capital(named_head(call, head))
        said.append(f"{name} took most of it from “{text}” ({most}): {signed(float(own[most]))}.")
    return [*said, "These are estimates of one gradient: ablating a head measures what it does."]


def _most(start: str, parts: Sequence[tuple[str, float]], verb: str = "was brought", by: str = "by ") -> list[str]:
    """Which parts brought most, and which stands most against them."""
    if not parts or parts[0][1] == 0:
        return []
    least = LEAST * abs(parts[0][1])
    along = [each for each in parts if each[1] > 0][:NAMED]
    against = [each for each in parts if each[1] < 0][:NAMED]
    named = [f"{name} ({signed(added)})" for name, added in along if added >= least]
    away = [f"{name} ({signed(added)})" for name, added in against if -added >= least]
    if not named:
        return [f"{start} nothing was brought; most was taken away by {listed(away)}."]
    but = f"; most was taken away by {away[0]}" if away else ""
    return [f"{start} most {verb} {by}{listed(named)}{but}."]
