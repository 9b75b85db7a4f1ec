"""Sentences about how attention formed, held against every weight of every step."""

import math
import random
import re
from collections import Counter
from itertools import pairwise
from typing import Any

from regard.explain.wording import number
from regard.questions.evolve.answer import Evolution
from regard.questions.evolve.sentences import of_change
from tests.said.templates import Groups, Template, hold, reads, shows


def table(draw: random.Random, size: int, causal: bool) -> list[list[float]]:
    rows = []
    for i in range(size):
        row = [draw.random() ** 3 if j <= i or not causal else 0.0 for j in range(size)]
        rows.append([value / sum(row) for value in row])
    return rows


def evolution(draw: random.Random) -> Evolution:
    """So many steps of one head over some tokens, some of which are called alike; causal or not."""
    size, count = draw.choice([2, 4]), draw.choice([1, 1, 2, 3, 5])
    names = draw.choice([list("abcd"), list("abab"), list("abbc")])[:size]
    causal, still = draw.random() < 0.6, draw.random() < 0.15
    tables = [table(draw, size, causal)]
    for _ in range(count - 1):
        tables.append(tables[0] if still else table(draw, size, causal))
    entropy = [sum(-w * math.log(w) for row in each for w in row if w > 0) / size for each in tables]
    change = [0.0] + [
        sum(abs(x - y) for r, q in zip(a, b, strict=True) for x, y in zip(r, q, strict=True)) / size**2
        for a, b in pairwise(tables)
    ]
    paths = [[(draw.random(), draw.random()) for _ in tables] for _ in range(3)]
    power = draw.choice([0.3, 2, 9])
    heads = [[[draw.random() ** power for _ in range(2)] for _ in range(2)] for _ in tables]
    return Evolution(
        "attention", 0, None, [10 * n for n in range(count)], names, list(names), tables, entropy, change,
        ["a", "b", "c"], paths, (0.5, 0.2), draw.choice([[], heads]),
    )  # fmt: skip


def cells(found: Evolution, pair: str) -> list[tuple[int, int]]:
    """The cells that a sentence can mean by a pair."""
    match = re.fullmatch(r"“(\w)”(?: \((\d)\))? looks at (?:(itself)|“(\w)”(?: \((\d)\))?)", pair)
    assert match, pair
    query, at, itself, key, to = match.groups()
    own = [i for i, name in enumerate(found.queries) if name == query and at in (None, str(i))]
    return [
        (i, j) for i in own for j, name in enumerate(found.keys)
        if (i == j if itself else name == key and to in (None, str(j)) and i != j)
    ]  # fmt: skip


def sharper(groups: Groups, found: Any) -> None:
    first, last = (math.exp(found.entropy[n]) for n in (0, -1))
    shows(groups["last"], last)
    if groups["first"]:
        shows(groups["first"], first)
        assert groups["how"] == ("sharper" if last < first else "broader")
    elif groups["about"]:
        assert abs(found.entropy[0] - found.entropy[-1]) < 0.05


def largest(groups: Groups, found: Any) -> None:
    every = {(i, j): w for i, row in enumerate(found.weights[0]) for j, w in enumerate(row)}
    free = {i for i, row in enumerate(found.weights[0]) if sum(w > 0 for w in row) > 1}
    if groups["alone"]:
        every = {cell: w for cell, w in every.items() if cell[0] in free}
    most = max(every.values())
    assert any(every.get(cell) == most for cell in cells(found, groups["pair"] or "")), most
    shows(groups["weight"], most)


def changed(groups: Groups, found: Any) -> None:
    every = {
        (i, j): now - found.weights[0][i][j] for i, row in enumerate(found.weights[-1]) for j, now in enumerate(row)
    }
    most = max(every.values()) if groups["way"] == "grew" else min(every.values())
    (cell,) = [cell for cell in cells(found, groups["pair"] or "") if every[cell] == most]
    assert (most > 0) == (groups["way"] == "grew")
    shows(groups["after"], found.weights[-1][cell[0]][cell[1]])
    shows(groups["before"], found.weights[0][cell[0]][cell[1]])
    also = [each for each, change in every.items() if each != cell and number(abs(change)) == number(abs(most))]
    also = [each for each in also if (every[each] > 0) == (groups["way"] == "grew")]
    named, _, more = (groups["others"] or "").partition(" and ")
    named = [name for name in named.split(", ") if name]
    assert len(named) + int((more or "0").split()[0]) == len(also)
    assert all(set(cells(found, name)) & set(also) for name in named)
    if named:
        shows(groups["much"], abs(most))


def titled(groups: Groups, found: Any) -> None:
    every = {
        (i, j): abs(now - found.weights[0][i][j])
        for i, row in enumerate(found.weights[-1])
        for j, now in enumerate(row)
    }
    assert any(
        every[i, j] == max(every.values())
        and reads(groups["before"], found.weights[0][i][j])
        and reads(groups["after"], found.weights[-1][i][j])
        for i, j in cells(found, groups["pair"] or "")
    )
    alike = [number(each) for each in every.values()].count(number(max(every.values())))
    assert (alike > 1) == bool(groups["one"])


def nothing(groups: Groups, found: Any) -> None:
    for row, then in zip(found.weights[-1], found.weights[0], strict=True):
        assert all(a - b < 0.05 for a, b in zip(row, then, strict=True))


def still(groups: Groups, found: Any) -> None:
    assert all(each == found.weights[0] for each in found.weights)


def when(groups: Groups, found: Any) -> None:
    n = found.steps.index(int(groups["to"] or 0))
    assert found.steps[n - 1] == int(groups["since"] or 0)
    assert found.change[n] == max(found.change)
    shows(groups["share"], found.change[n] / sum(found.change))
    half = found.steps.index(int(groups["half"] or 0))
    assert sum(found.change[: half + 1]) >= sum(found.change) / 2 - 1e-9
    assert sum(found.change[:half]) < sum(found.change) / 2
    assert int(groups["end"] or 0) == found.steps[-1]


def moved(groups: Groups, found: Any) -> None:
    far = [math.dist(path[0], path[-1]) for path in found.paths]
    assert far[found.embedded.index(groups["name"])] == max(far)
    shows(groups["kept"], sum(found.share))


def head(groups: Groups, found: Any) -> list[float]:
    """The named head's score at each step; it has to be the largest of all heads at the last."""
    layer, nth = int(groups["layer"] or 0), int(groups["head"] or 0)
    assert found.induction[-1][layer][nth] == max(score for row in found.induction[-1] for score in row)
    shows(groups["last"], found.induction[-1][layer][nth])
    if groups.get("others") is not None or found.induction[-1][layer][nth] >= 0.3:
        named = dict(re.findall(r"L(\dH\d) \(([\d.]+)\)", groups.get("others") or ""))
        scores = {f"{i}H{j}": score for i, row in enumerate(found.induction[-1]) for j, score in enumerate(row)}
        assert set(named) == {name for name, score in scores.items() if score >= 0.3} - {f"{layer}H{nth}"}
        for name, told in named.items():
            shows(told, scores[name])
    return [step[layer][nth] for step in found.induction]


def none(groups: Groups, found: Any) -> None:
    assert head(groups, found)[-1] < 0.3


def always(groups: Groups, found: Any) -> None:
    scores = head(groups, found)
    assert scores[-1] >= 0.3
    assert min(scores) >= scores[-1] / 2


def formed(groups: Groups, found: Any) -> None:
    scores, n = head(groups, found), found.steps.index(int(groups["step"] or 0))
    assert found.steps[n - 1] == int(groups["step_before"] or 0)
    shows(groups["then"], scores[n])
    shows(groups["before"], scores[n - 1])
    assert min(scores[n:]) >= scores[-1] / 2 > scores[n - 1]


N = r"[\d.]+"
GIVES = "to what came behind a token's earlier occurrences"
AMONG = rf"as equal weights over (?P<last>{N}) tokens would \(e to the entropy, mean over the tokens\)"
ALSO = r"(?: So do(?:es)?, at step \d+, (?P<others>.+)\.)?"
WHERE = "In layer 0, mean of heads,"
HEAD = r"head L(?P<layer>\d)H(?P<head>\d)"
TEMPLATES = [
    Template("spread", rf"{WHERE} at step \d+ a token spreads its attention {AMONG}(?P<about>, about as at step 0)?\."
             r"(?P<first>!)?", sharper),
    Template("sharper", rf"{WHERE} attention became (?P<how>\w+): at step \d+ a token spreads it {AMONG}; at "
             rf"step 0 over (?P<first>{N})\.", sharper),
    Template("largest", r"The largest weight there(?P<alone>, of tokens that may look at more than one)?: (?P<pair>.+) "
             rf"\((?P<weight>{N})\)\.", largest),
    Template("changed", rf"What (?P<way>grew|fell) most there: (?P<pair>.+?) with (?P<after>{N}), at step 0 with "
             rf"(?P<before>{N})(?:; as much, (?P<much>{N}): (?P<others>.+))?\.", changed),
    Template("nothing", r"No link between two tokens grew there by 0\.05 or more\.", nothing),
    Template("titled", rf"(?P<one>one of the )?most changed: (?P<pair>.+), (?P<before>{N}) at step 0, "
             rf"(?P<after>{N}) at step \d+", titled),
    Template("no title", r"no weight changed", still),
    Template("still", r"No weight there changed at all\.", still),
    Template("when", r"The weights there changed most between steps (?P<since>\d+) and (?P<to>\d+) "
             r"\((?P<share>\d+%) of all change\); half of all was done by step (?P<half>\d+) of (?P<end>\d+)\.", when),
    Template("moved", r"Of the learned embeddings that of “(?P<name>\w)” ended furthest from its start, on the "
        r"plane that "
             r"keeps (?P<kept>\d+%) of their variance\.", moved),
    Template("none", rf"No head attends by induction at step \d+: most gives {HEAD}, (?P<last>{N}) {GIVES}\.", none),
    Template("always", rf"H{HEAD[1:]} attends by induction(?: from step 0 on)?: it gives (?P<last>{N}) "
        rf"{GIVES}\.{ALSO}", always),
    Template("formed", rf"Induction formed by step (?P<step>\d+): {HEAD} gives (?P<then>{N}) {GIVES}, at step "
             rf"(?P<step_before>\d+) it gave (?P<before>{N}); at step \d+ (?P<last>{N})\.{ALSO}", formed),
]  # fmt: skip


def test_every_sentence_about_random_training_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(4)
    for _ in range(200):
        each = evolution(draw)
        title = [of_change(each)] if len(each.steps) > 1 else []
        spoke += hold([*each.findings(), *title], each, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
