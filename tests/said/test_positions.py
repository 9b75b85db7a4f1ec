"""Sentences about positional encodings, held against the whole table, picture or bias."""

import math
import re
from collections import Counter
from statistics import mean, median_low
from typing import Any

import torch
from torch import Tensor

from regard.questions.positions.answer import Positions
from regard.questions.positions.encodings import encoding
from tests.said.templates import Groups, Template, hold, shows


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True)) / (math.hypot(*a) * math.hypot(*b))


def at(table: list[list[float]], far: int) -> float:
    return mean(cosine(table[n], table[n + far]) for n in range(len(table) - far))


def nearness(groups: Groups, numbers: Any) -> None:
    table = numbers[0].tolist()
    shows(groups["near"], at(table, 1))
    if groups["far"]:
        shows(groups["far"], at(table, int(groups["apart"] or 0)))
    if groups["falls"]:
        told = [at(table, int(each)) for each in re.findall(r"\d+", groups["falls"])]
        assert told == sorted(told, reverse=True)


def learned(groups: Groups, numbers: Any) -> None:
    lengths = [math.hypot(*row) for row in numbers[0].tolist()]
    shows(groups["width"], len(numbers[0][0]))
    shows(groups["median"], median_low(lengths))
    if groups["most"]:
        assert lengths[int(groups["most"])] == max(lengths)
        shows(groups["length"], max(lengths))


def lone(groups: Groups, numbers: Any) -> None:
    table = numbers[0].tolist()
    every = [mean(cosine(a, b) for m, b in enumerate(table) if m != n) for n, a in enumerate(table)]
    assert every[int(groups["least"] or 0)] == min(every)
    shows(groups["cosine"], min(every))
    shows(groups["all"], mean(every))


def added(groups: Groups, numbers: Any) -> None:
    shows(groups["width"], len(numbers[0][0]))
    shows(groups["low"], float(numbers.min()))
    shows(groups["high"], float(numbers.max()))


def wave(width: int, column: int) -> float:
    return 2 * math.pi * 10000 ** (2 * (column // 2) / width)


def repeats(groups: Groups, numbers: Any) -> None:
    shows(groups["first"], 2 * math.pi)
    width = len(numbers[0][0])
    assert (groups["last"] is None) == (width <= 2)
    if groups["last"]:
        shows(groups["last"], wave(width, width - 1))


def lasting(groups: Groups, numbers: Any) -> None:
    _, rows, width = numbers.shape
    shows(groups["rows"], rows)
    shows(groups["of"], width)
    shows(groups["count"], sum(wave(width, column) > rows for column in range(width)))


def periods(numbers: Tensor) -> list[float]:
    return [2 * math.pi / math.atan2(sine, cosine) for cosine, sine in zip(*numbers[:, 1].tolist(), strict=True)]


def turns(groups: Groups, numbers: Any) -> None:
    every = periods(numbers)
    shows(groups["first"], every[0])
    shows(groups["last"], every[-1])


def slow(groups: Groups, numbers: Any) -> None:
    shows(groups["count"], sum(each > numbers.shape[1] for each in periods(numbers)))
    shows(groups["of"], numbers.shape[2])
    shows(groups["rows"], numbers.shape[1])


def general(groups: Groups, numbers: Any) -> None:
    if groups["pairs"]:
        shows(groups["pairs"], numbers.shape[2])


def slopes(numbers: Tensor) -> list[float]:
    """What each head takes off for a position, of every distance that the picture has."""
    rows = numbers.shape[1]
    every = [[-float(head[i, j]) / (i - j) for i in range(rows) for j in range(i)] for head in numbers]
    for each in every:
        assert math.isclose(min(each), max(each), rel_tol=1e-5)
    return [each[0] for each in every]


def off(groups: Groups, numbers: Any) -> None:
    every = slopes(numbers)
    steep, flat = int(groups["steep"] or 0), int(groups["flat"] or 0)
    assert (every[steep], every[flat]) == (max(every), min(every))
    assert (groups["most"], groups["least"]) == (f"{every[steep]:.4g}", f"{every[flat]:.4g}")


def multiplies(groups: Groups, numbers: Any) -> None:
    every, far = slopes(numbers), numbers.shape[1] - 1
    steep, flat = int(groups["steep"] or 0), int(groups["flat"] or 0)
    shows(groups["far"], far)
    assert math.isclose(float(groups["most"] or 0), math.exp(-every[steep] * far), rel_tol=0.05)
    shows(groups["least"], math.exp(-every[flat] * far))


N = r"−?[\d.,]+?"
TEMPLATES = [
    Template("nearness", rf"Neighbouring positions have vectors of cosine (?P<near>{N})(?: on average, those "
             rf"(?P<apart>\d+) apart (?P<far>{N}): (?:ever less alike at distances (?P<falls>[\d, ]+)|no steady "
             rf"fall with "
             r"distance))?\.", nearness),
    Template("learned", r"To each position's token a vector of (?P<width>\d+) learned numbers is added, of median "
        r"length "
             rf"(?P<median>{N})(?:; the longest is that of position (?P<most>\d+) \((?P<length>{N})\))?\.", learned),
    Template("lone", r"Least like the others is position (?P<least>\d+): its mean cosine to them is "
             rf"(?P<cosine>{N}), that of all positions (?P<all>{N})\.", lone),
    Template("added", r"To each position's token a vector of (?P<width>\d+) numbers is added, sines and cosines "
        r"in turn; "
             rf"here they lie from (?P<low>{N}) to (?P<high>{N}), however long the text is\.", added),
    Template("repeats", rf"(?:The first|Its) pair repeats every (?P<first>{N}) positions \(2π\)(?:, the last every "
             rf"(?P<last>{N}))?\.", repeats),
    Template("lasting", r"(?P<count>\d+) of (?P<of>\d+) columns do not repeat within these (?P<rows>\d+) positions\.",
             lasting),
    Template("turned", r"Nothing is added: each of (?P<pairs>\d+) pairs of a query's and a key's components is "
        r"turned by an "
             r"angle that grows with the position\.", general),
    Template("general", r"(?:Where two tokens stand matters to a score only by how far apart they are: both turn, "
        r"and the "
             r"difference of their angles is left|Nothing is added to the tokens: each head takes something off a "
             r"score "
             r"for every position of distance)\.(?P<pairs>!)?", general),
    Template("turns", rf"The first pair turns once in (?P<first>{N}) positions, the last in (?P<last>{N})\.", turns),
    Template("slow", r"(?P<count>\d+) of (?P<of>\d+) pairs do not turn once within these (?P<rows>\d+) "
        r"positions\.", slow),
    Template("off", rf"Head (?P<steep>\d) takes off most, (?P<most>{N}) a position; head (?P<flat>\d) least, "
             rf"(?P<least>{N})\.", off),
    Template("multiplies", r"Of tokens (?P<far>\d+) apart that multiplies exp\(score\) by (?P<most>[\d.e+-]+) in head "
             rf"(?P<steep>\d), by (?P<least>{N}) in head (?P<flat>\d): the one looks near, the other far\.",
             multiplies),
]  # fmt: skip


def test_every_sentence_about_encodings_is_true() -> None:
    spoke: Counter[str] = Counter()
    generator = torch.Generator().manual_seed(0)
    drawn: list[tuple[str, Tensor]] = []
    for rows, width in ((1, 4), (2, 2), (3, 8), (20, 6), (33, 12)):
        drawn += [(kind, encoding(kind, rows, width)) for kind in ("sinusoidal", "rotary", "alibi")]
        drawn.append(("learned", torch.randn(1, rows, width, generator=generator)))
        drawn.append(("learned", 3 + torch.randn(1, rows, width, generator=generator).cumsum(1)))
    for kind, pictures in drawn:
        pictures = pictures.double()
        spoke += hold(Positions(kind, pictures).findings(), pictures, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
