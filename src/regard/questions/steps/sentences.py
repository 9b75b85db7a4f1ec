"""State in a few sentences how a word's context vector comes about in one head: what it looks at, and why so much."""

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from regard.explain.wording import listed, number, quoted
from regard.text.tokens import Token

if TYPE_CHECKING:
    from regard.questions.steps.answer import Steps
    from regard.textbook import HeadSteps

NAMED = 3  # tokens that a sentence names at most
LEAST = 0.01  # weights and shares below it are not worth a name
RECORDS = 4  # queries that are spoken of, of a word of several tokens or one that stands several times


def of_steps(found: "Steps") -> list[str]:
    """Say what each token of the word looks at, and of a single one how a weight and the result come about."""
    tokens, sinks = found.tokens, [sink.token for sink in found.sinks]
    where = f"In layer {found.layer}, head {found.head}"
    few = found.found[:RECORDS]
    sentences = [_looks(steps, n, tokens, where, sinks, several=len(found.found) > 1) for n, steps in few]
    if len(found.found) == 1:
        n, steps = found.found[0]
        sentences += [_equal(steps), _comes_about(steps, n, tokens, sinks), _gives(steps, tokens)]
    left = len(found.found) - len(few)
    more = [f"{left} more of its tokens have tables of their own."] if left else []
    return [sentence for sentence in [*sentences, *more] if sentence]


def shares(steps: "HeadSteps") -> Float[Tensor, " S"]:
    """The part that each key's weighted value has in the context vector: its projection; all of them add up to 1."""
    length = float(steps.context @ steps.context)
    return (steps.weighted @ steps.context) / length if length > 0 else steps.weights * 0.0


def root_of(steps: "HeadSteps") -> str:
    """The usual scale by its name, nothing where a head's is another."""
    width = len(steps.query)
    return f"1/√{width}" if abs(steps.scale - width**-0.5) < 1e-9 else ""


def _key_name(tokens: Sequence[Token], n: int, sinks: Collection[int] = ()) -> str:
    twice = sum(token.text == tokens[n].text for token in tokens) > 1
    sink = ", a sink" if n in sinks else ""
    name = tokens[n].text if tokens[n].special else quoted(tokens[n].text)
    inside = f"{n}{sink}" if twice or sink else ""
    return f"{name} ({inside})" if inside else name


def _looks(
    steps: "HeadSteps", query: int, tokens: Sequence[Token], where: str, sinks: Collection[int], *, several: bool
) -> str:
    """What the query looks at most."""
    order = steps.weights.sort(descending=True, stable=True).indices.tolist()
    best = [n for n in order[:NAMED] if float(steps.weights[n]) >= LEAST]
    if not best:
        return ""
    who = f"{quoted(tokens[query].text)} (token {query})" if several else quoted(tokens[query].text)
    names = ["itself" if n == query else _key_name(tokens, n, sinks) for n in best]
    taken = 1 - float(steps.weights.sum())
    beside = f", beside {number(taken)} to a sink that the head has learned" if taken >= LEAST else ""
    if len(_allowed(steps)) == 1:
        return f"{where} {who} may look at {names[0]} alone{beside}."
    named = [f"{name} {number(float(steps.weights[n]))}" for name, n in zip(names, best, strict=True)]
    half = sum(float(steps.weights[n]) for n in best) > 0.5
    return f"{where} {who} {'gives most of its weight to' if half else 'looks most at'} {listed(named)}{beside}."


def _allowed(steps: "HeadSteps") -> list[int]:
    return [n for n, score in enumerate(steps.scores.tolist()) if score > float("-inf")]


def _equal(steps: "HeadSteps") -> str:
    """What an equal share would be."""
    count, hidden = len(_allowed(steps)), len(steps.scores) - len(_allowed(steps))
    if count < 2:
        return ""
    aside = f"; {hidden} later ones it may not look at" if hidden and _later_alone(steps) else ""
    largest = float(steps.weights.max())
    return (
        f"Equal weights would be 1/{count} = {number(1 / count)} each; the largest is {largest * count:.1f} times that"
        f"{aside}."
    )


def _later_alone(steps: "HeadSteps") -> bool:
    """Whether what it may not look at are the last tokens."""
    allowed = _allowed(steps)
    return allowed == list(range(len(allowed)))


def _comes_about(steps: "HeadSteps", query: int, tokens: Sequence[Token], sinks: Collection[int]) -> str:
    """How the weight of one token comes about: the largest of another word, or the largest of all."""
    words = [n for n in _allowed(steps) if n != query and not tokens[n].special and n not in sinks]
    places = words or _allowed(steps)
    if not places:
        return ""
    n = max(places, key=lambda place: float(steps.weights[place]))
    root = f" ({root_of(steps)})" if root_of(steps) else ""
    scored = f"q · k = {float(steps.products[n]):z.2f}, times {steps.scale:.3g}{root} is {float(steps.scaled[n]):z.2f}"
    if float(steps.scores[n]) != float(steps.scaled[n]):
        scored += f", with {'softcap and ' * (steps.softcap is not None)}bias {float(steps.scores[n]):z.2f}"
    largest = max(float(steps.scores.max()), float("-inf") if steps.sink is None else steps.sink)
    top = f"exp({float(steps.scores[n]):z.2f} - {largest:z.2f}) / {steps.total:.2f} = {number(float(steps.weights[n]))}"
    return f"For {_key_name(tokens, n)}: {scored}; softmax makes {top} of it."


def _gives(steps: "HeadSteps", tokens: Sequence[Token]) -> str:
    """Whose value is most of the context vector, which need not be who has the largest weight."""
    parts = shares(steps)
    order = parts.sort(descending=True, stable=True).indices.tolist()
    best = [n for n in order[:NAMED] if float(parts[n]) >= LEAST]
    if not best:
        return ""
    named = [f"{_key_name(tokens, n)} ({float(parts[n]):.0%})" for n in best]
    most = int(steps.weights.argmax())
    other = (
        f", though {_key_name(tokens, most)} has the largest weight: its value points elsewhere or is short"
        if most != best[0]
        else ""
    )
    whole = sum(float(parts[n]) for n in best)
    share = "Most" if whole > 0.5 else "The largest part"
    pull = "; other tokens pull the other way" * (round(whole, 2) > 1)
    return f"{share} of the context vector (the weighted sum of values) comes from {listed(named)}{other}{pull}."
