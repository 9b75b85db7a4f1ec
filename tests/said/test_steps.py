"""Sentences about one head's steps, held against every weight, share and score of the query."""

import math
import random
import re
from collections import Counter
from types import SimpleNamespace
from typing import Any

import torch

from regard.questions.steps.sentences import of_steps
from regard.text.tokens import Token
from tests.said.templates import Groups, Template, hold, shows
from tests.support import in_text

NAMES = ("[S]", "river", "bank", "the", "the", "man", "of")


def answer(draw: random.Random) -> SimpleNamespace:
    """One or several queries of a head over the same tokens: scores, weights, values, drawn at random."""
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    tokens = in_text([Token(n, name, 4 * n, 4 * n + 3, n, n == 0) for n, name in enumerate(NAMES)])
    count, width = len(tokens), draw.choice([4, 9])
    records = []
    for query in draw.sample(range(1, count), draw.choice([1, 1, 1, 2, 6])):
        scale = draw.choice([width**-0.5, 0.3])
        products = draw.choice([1.0, 8.0]) * torch.randn(count, generator=generator).double()
        bias = torch.randn(count, generator=generator).double() * draw.choice([0, 0, 1])
        scores = scale * products + bias
        if draw.random() < 0.4:
            scores[query + 1 :] = -torch.inf
        if draw.random() < 0.1:
            scores[[n for n in range(count) if n != query]] = -torch.inf
        sink = draw.choice([None, None, -1.0, 4.0])
        largest = max(float(scores.max()), -math.inf if sink is None else sink)
        total = float((scores - largest).exp().sum()) + (0.0 if sink is None else math.exp(sink - largest))
        weights = (scores - largest).exp() / total
        value = torch.randn(count, 3, generator=generator).double() - draw.choice([0, 1])
        weighted = weights[:, None] * value
        steps = SimpleNamespace(
            scale=scale, softcap=None, sink=sink, products=products, scaled=scale * products, scores=scores,
            total=total, weights=weights, weighted=weighted, context=weighted.sum(0), query=torch.ones(width),
        )  # fmt: skip
        records.append((query, steps))
    return SimpleNamespace(found=records, tokens=tokens, layer=0, head=1, sinks=[])


def name(n: int) -> str:
    plain = NAMES[n] if n == 0 else f"“{NAMES[n]}”"
    return f"{plain} ({n})" if NAMES.count(NAMES[n]) > 1 else plain


def of_query(groups: Groups, numbers: Any) -> tuple[int, Any]:
    if groups.get("token") is None:
        assert len(numbers.found) == 1
        return numbers.found[0]
    return next(each for each in numbers.found if each[0] == int(groups["token"] or 0))


def seen(steps: Any) -> list[int]:
    return [n for n, score in enumerate(steps.scores.tolist()) if score > -math.inf]


def taken(groups: Groups, steps: Any) -> None:
    """What a learned sink gets is said, wherever it is worth a name."""
    rest = 1 - float(steps.weights.sum())
    assert (groups["sink"] is None) == (rest < 0.01)
    if groups["sink"]:
        shows(groups["sink"], rest)


def looks(groups: Groups, numbers: Any) -> None:
    query, steps = of_query(groups, numbers)
    told = re.findall(r"(itself|\[S\]|“\w+”(?: \(\d\))?) (\d\.\d+)", groups["names"] or "")
    weights = {"itself" if n == query else name(n): w for n, w in enumerate(steps.weights.tolist())}
    order = sorted(weights.values(), reverse=True)
    for place, (who, weight) in enumerate(told):
        assert weights[who] == order[place], f"{who} is not number {place} of the row"
        shows(weight, weights[who])
    if "most of" in (groups["how"] or ""):
        assert sum(order[: len(told)]) > 0.5
    taken(groups, steps)


def alone(groups: Groups, numbers: Any) -> None:
    query, steps = of_query(groups, numbers)
    (only,) = seen(steps)
    assert groups["names"] == ("itself" if only == query else name(only))
    taken(groups, steps)


def equal(groups: Groups, numbers: Any) -> None:
    _, steps = of_query(groups, numbers)
    count = len(seen(steps))
    shows(groups["count"], count)
    shows(groups["each"], 1 / count)
    shows(groups["times"], float(steps.weights.max()) * count)
    if groups["later"]:
        assert seen(steps) == list(range(count))
        shows(groups["later"], len(NAMES) - count)


def comes(groups: Groups, numbers: Any) -> None:
    _, steps = of_query(groups, numbers)
    n = next(n for n in range(len(NAMES)) if name(n) == groups["name"])
    shows(groups["product"], float(steps.products[n]))
    shows(groups["scaled"], float(steps.scaled[n]))
    shows(groups["biased"] or groups["scaled"], float(steps.scores[n]))
    shows(groups["weight"], float(steps.weights[n]))
    assert (groups["root"] is not None) == math.isclose(steps.scale, len(steps.query) ** -0.5)
    made = math.exp(float(groups["score"] or 0) - float(groups["largest"] or 0)) / float(groups["total"] or 0)
    assert math.isclose(made, float(steps.weights[n]), rel_tol=0.03, abs_tol=1e-4), made


def gives(groups: Groups, numbers: Any) -> None:
    _, steps = of_query(groups, numbers)
    parts = (steps.weighted @ steps.context / (steps.context @ steps.context)).tolist()
    told = re.findall(r"(\[S\]|“\w+”(?: \(\d\))?) \((-?\d+%)\)", groups["names"] or "")
    by_name = {name(n): part for n, part in enumerate(parts)}
    order = sorted(parts, reverse=True)
    for place, (who, part) in enumerate(told):
        assert math.isclose(by_name[who], order[place])
        shows(part, by_name[who])
    assert (groups["share"] == "Most") == (sum(order[: len(told)]) > 0.5)
    assert (groups["pull"] is not None) == (round(sum(order[: len(told)]), 2) > 1)
    most = int(steps.weights.argmax())
    assert (groups["other"] is None) == (name(most) == told[0][0])
    assert groups["other"] in (None, name(most))


def more(groups: Groups, numbers: Any) -> None:
    shows(groups["count"], len(numbers.found) - 4)


WHO = r"In layer 0, head 1 “\w+”(?: \(token (?P<token>\d)\))?"
SINK = r"(?:, beside (?P<sink>[\d.]+) to a sink that the head has learned)?"
N = r"-?[\d.]+"
TEMPLATES = [
    Template("alone", rf"{WHO} may look at (?P<names>\S+(?: \(\d\))?) alone{SINK}\.", alone),
    Template("looks", rf"{WHO} (?P<how>gives most of its weight to|looks most at) (?P<names>.+?){SINK}\.", looks),
    Template(
        "equal", r"Equal weights would be 1/(?P<count>\d) = (?P<each>[\d.]+) each; the largest is (?P<times>[\d.]+) "
        r"times that(?:; (?P<later>\d) later ones it may not look at)?\.", equal,
    ),
    Template(
        "comes", rf"For (?P<name>.+): q · k = (?P<product>{N}), times [\d.]+(?P<root> \(1/√\d\))? is (?P<scaled>{N})"
        rf"(?:, with bias (?P<biased>{N}))?; softmax makes exp\((?P<score>{N}) - (?P<largest>{N})\) / (?P<total>{N}) = "
        rf"(?P<weight>{N}) of it\.", comes,
    ),
    Template(
        "gives", r"(?P<share>Most|The largest part) of the context vector \(the weighted sum of values\) comes from "
        r"(?P<names>.+\))(?:, though (?P<other>.+) has the largest weight: its value points elsewhere or is short)?"
        r"(?P<pull>; other tokens pull the other way)?\.", gives,
    ),
    Template("more", r"(?P<count>\d) more of its tokens have tables of their own\.", more),
]  # fmt: skip


def test_every_sentence_about_random_steps_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(2)
    for _ in range(150):
        each = answer(draw)
        spoke += hold(of_steps(each), each, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
