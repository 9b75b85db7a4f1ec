"""Sentences about a layer's attention over a text, held against every weight of the layer."""

import math
import random
from collections import Counter
from dataclasses import dataclass

from regard.explain.weights.sinks import sinks_of
from regard.questions.map.answer import Matrix
from regard.questions.map.sentences import of_matrix as matrix_findings
from regard.questions.map.whole import matrix
from tests.said.random_traces import trace_of
from tests.said.templates import Groups, Template, hold, shows

LENGTH, HEADS = 14, 3


@dataclass(frozen=True)
class Weights:
    """All weights (head, query, key) of the heads that are spoken of, by their number; which tokens are aside."""

    heads: dict[int, list[list[float]]]
    layer: int
    far: int
    special: set[int]
    sinks: set[int]

    def mean(self, of: dict[int, float]) -> float:
        return sum(of.values()) / len(of)


def distances(numbers: Weights) -> dict[int, float]:
    return {
        h: sum(w * abs(i - j) for i, row in enumerate(rows) for j, w in enumerate(row)) / LENGTH
        for h, rows in numbers.heads.items()
    }


def spreads(numbers: Weights) -> dict[int, float]:
    return {
        h: math.exp(sum(-w * math.log(w) for row in rows for w in row if w > 0) / LENGTH)
        for h, rows in numbers.heads.items()
    }


def distance(groups: Groups, numbers: Weights) -> None:
    every = distances(numbers)
    shows(groups["mean"], numbers.mean(every))
    if groups["near"]:
        near, far = int(groups["near"]), int(groups["far"] or 0)
        assert every[near] == min(every.values())
        assert every[far] == max(every.values())
        shows(groups["least"], every[near])
        shows(groups["most"], every[far])


def spread(groups: Groups, numbers: Weights) -> None:
    every = spreads(numbers)
    if groups["sharp"] is None:
        assert len(every) == 1
        shows(groups["least"], *every.values())
        return
    sharp, broad = int(groups["sharp"]), int(groups["broad"] or 0)
    assert every[sharp] == min(every.values())
    assert every[broad] == max(every.values())
    shows(groups["least"], every[sharp])
    shows(groups["most"], every[broad])


def apart(groups: Groups, numbers: Weights) -> None:
    for name, tokens in (("special", numbers.special), ("sink", numbers.sinks)):
        every = {h: sum(row[j] for row in rows for j in tokens) / LENGTH for h, rows in numbers.heads.items()}
        share = numbers.mean(every)
        if groups[name] is None:
            assert share < 0.005
            continue
        shows(groups[name], share)
        if groups[f"{name}_low"]:
            assert every[int(groups[f"{name}_near"] or 0)] == min(every.values())
            assert every[int(groups[f"{name}_far"] or 0)] == max(every.values())
            shows(groups[f"{name}_low"], min(every.values()))
            shows(groups[f"{name}_high"], max(every.values()))


def received(numbers: Weights) -> list[float]:
    rows = list(numbers.heads.values())
    return [sum(row[j] for head in rows for row in head) / len(rows) for j in range(LENGTH)]


def receiver(groups: Groups, numbers: Weights) -> None:
    every, token = received(numbers), int(groups["token"] or 0)
    aside = numbers.special | numbers.sinks if groups["aside"] else set()
    assert every[token] == max(value for n, value in enumerate(every) if n not in aside)
    shows(groups["times"], every[token])
    assert (every[token] < 1.5) == ("stands out" in (groups["says"] or ""))


def pair(groups: Groups, numbers: Weights) -> None:
    own = set(range(LENGTH)) - numbers.special - numbers.sinks
    cells = {
        (h, i, j): numbers.heads[h][i][j]
        for h in numbers.heads for i in own for j in own if abs(i - j) > numbers.far and numbers.heads[h][i][j] > 0
    }  # fmt: skip
    if groups["head"] is None:
        assert not cells
        return
    h, i, j = (int(groups[name] or 0) for name in ("head", "query", "key"))
    assert cells[h, i, j] == max(cells.values())
    shows(groups["weight"], cells[h, i, j])
    assert int(groups["apart"] or 0) == abs(i - j)
    assert (groups["way"] == "ahead") == (j > i)


def part(name: str, text: str) -> str:
    between = (
        rf" \((?P<{name}_low>\d+%) in head (?P<{name}_near>\d), (?P<{name}_high>\d+%) in head (?P<{name}_far>\d)\)"
    )
    return rf"(?:(?:^| and ){text} take (?P<{name}>\d+%)(?:{between})?)?"


TIMES = r"(?P<times>[\d.]+) times what tokens get on average"
TEMPLATES = [
    Template(
        "distance", r"In (?:head \d of )?layer \d a token looks (?P<mean>[\d.]+) tokens away on average(?:: least far "
        r"in head (?P<near>\d) \((?P<least>[\d.]+)\), furthest in head (?P<far>\d) \((?P<most>[\d.]+)\))?\.", distance,
    ),
    Template(
        "spread of a head", r"It spreads its weight like equal weights over (?P<least>[\d.]+) tokens \(e to the "
        r"entropy\)\.(?P<sharp>!)?", spread,
    ),
    Template(
        "spread", r"Head (?P<sharp>\d) is the sharpest, as if it looked at (?P<least>[\d.]+) tokens alike \(e to the "
        r"entropy\); head (?P<broad>\d) the broadest, at (?P<most>[\d.]+)\.", spread,
    ),
    Template(
        "apart", part("special", "Special tokens") + part("sink", "[Aa]ttention sinks among the tokens")
        + r" of all attention\.", apart,
    ),
    Template(
        "receiver", r"(?P<aside>[Ss]pecial tokens and sinks aside, )?(?P<says>.*[Nn]o token stands out: the largest "
        rf"receiver, )?“w\d+” \(token (?P<token>\d+)\)(?: receives most|, gets),? {TIMES}\.", receiver,
    ),
    Template(
        "pair", r"The strongest link over more than 4 tokens, special tokens and sinks aside: “w\d+” "
        r"\((?P<query>\d+)\) looks (?P<apart>\d+) tokens (?P<way>ahead|back) at “w\d+” \((?P<key>\d+)\), "
        r"(?P<weight>[\d.]+) in head (?P<head>\d)\.", pair,
    ),
    Template(
        "no pair", r"Special tokens and sinks aside, no token looks at one more than \d+ tokens away\.(?P<head>!)?",
        pair,
    ),
]  # fmt: skip


def test_every_sentence_about_random_layers_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(5)
    for _ in range(30):
        trace = trace_of(draw, LENGTH, HEADS, 1)
        head, far = draw.choice([None, None, draw.randrange(HEADS)]), draw.choice([4, 4, LENGTH])
        found: Matrix = matrix(trace, 0, head, top=draw.choice([3, LENGTH]), far=far)
        dense = trace.attention[0].dense().double().tolist()
        heads = {h: rows for h, rows in enumerate(dense) if head in (None, h)}
        sunk = {sink.token for sink in sinks_of(trace.attention, trace.tokens)}
        spoke += hold(matrix_findings(found), Weights(heads, 0, far, {0}, sunk), TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
