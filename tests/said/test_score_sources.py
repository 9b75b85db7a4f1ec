"""What is said of a score's pairs and parts is true of all of them, the mean of all keys taken away."""

import random

import torch
from torch import Tensor

from regard.capture.score_path import SideParts, Writer
from regard.questions.score.sentences import of_score
from regard.questions.score.sources import ScoreSources
from regard.text.tokens import encoded_ids
from tests.said.templates import Groups, Template, hold, shows


def differences(found: ScoreSources) -> Tensor:
    """Each pair's score beside the mean of the keys: (P, Q), the parts of both sides in the same order."""
    return found.scale * found.query_parts.vectors @ (found.key_parts.vectors - found.other_keys.vectors).T


def called(number: int) -> str:
    return "token embedding" if number == 0 else f"layer {number - 1}, feed-forward"


def pairs_of(found: ScoreSources) -> dict[str, float]:
    return {
        f"{called(p)} of “bank” × {called(q)} of “river”": float(value)
        for p, row in enumerate(differences(found))
        for q, value in enumerate(row)
    }


def told(said: str) -> list[tuple[str, str]]:
    parts = said.replace(") and ", "), ").split("), ")
    return [(name, figure.rstrip(")")) for name, figure in (part.rsplit(" (", 1) for part in parts)]


def most(named: str, against: str | None, among: dict[str, float], sign: int) -> None:
    """What is named comes first among all of that sign, and what stands against it first among the others."""
    for said, way in ((named, sign), (against, -sign)):
        values = sorted((value * way for value in among.values()), reverse=True)
        for n, (name, figure) in enumerate(told(said) if said else []):
            shows(figure, among[name])
            assert among[name] * way == values[n] > 0, f"{name} is named as number {n + 1} of {values}"


def score(groups: Groups, found: ScoreSources) -> None:
    shows(groups["weight"], found.weight)
    assert bool(groups["alone"]) == (found.seen == 1)
    if not groups["alone"]:
        shows(groups["score"], found.score)
        shows(groups["mean"], found.mean)
        shows(groups["apart"], abs(found.score - found.mean))
        assert (groups["side"] == "above") == (found.score >= found.mean)
        assert int(groups["seen"] or "") == found.seen


def pairs(groups: Groups, found: ScoreSources) -> None:
    among = pairs_of(found)
    assert int((groups["count"] or "").replace(",", "")) == len(among)
    assert (groups["side"] == "above") == (found.score >= found.mean)
    most(groups["named"] or "", groups["against"], among, 1 if found.score >= found.mean else -1)


def none_stands_out(groups: Groups, found: ScoreSources) -> None:
    among = pairs_of(found)
    assert int((groups["count"] or "").replace(",", "")) == len(among)
    largest = among[groups["name"] or ""]
    assert abs(largest) == max(abs(each) for each in among.values())
    shows(groups["figure"], largest)
    part = abs(largest) / sum(abs(each) for each in among.values())
    shows(groups["part"], part)
    assert part < 0.1


def no_pair(groups: Groups, found: ScoreSources) -> None:
    assert not any(pairs_of(found).values())


def side(groups: Groups, found: ScoreSources) -> None:
    """Each part of a side, with all of the other."""
    sums = differences(found).sum(1 if groups["word"] == "bank" else 0)
    assert bool(groups["beside"]) == (groups["word"] == "river")
    shows(groups["sum"], float(sums.sum()))
    among = {called(n): float(value) for n, value in enumerate(sums)}
    most(groups["named"] or "", groups["against"], among, 1 if found.score >= found.mean else -1)


def apart(groups: Groups, found: ScoreSources) -> None:
    assert (groups["softcapped"] is None) == (found.softcapped is None)
    assert (groups["bias"] is None) == (found.bias == 0)
    if groups["softcapped"]:
        shows(groups["softcapped"], found.softcapped or 0.0)
    if groups["bias"]:
        shows(groups["bias"], found.bias)


N = r"[+−]?[\d.]+"
AGAINST = r"(?:; (?P<against>.+) stands most against it)?"
TEMPLATES = [
    Template(
        "score",
        rf"In (?:cross-attention of )?layer 3, head 5 “bank” gives “river” (?P<weight>{N}) of its attention: "
        rf"(?:(?P<alone>there is no other token that it may look at, whatever the score)|the score is (?P<score>{N}), "
        rf"(?P<apart>{N}) (?P<side>above|below) the mean \((?P<mean>{N})\) of the (?P<seen>\d+) tokens that it "
        r"may look at)\.",
        score,
    ),
    Template(
        "pairs",
        r"Of all (?P<count>[\d,]+) pairs of parts, what takes the score (?P<side>above|below) the mean most is "
        rf"(?P<named>.+?\)){AGAINST}\.",
        pairs,
    ),
    Template(
        "none stands out",
        rf"No pair of parts says why: of (?P<count>[\d,]+) the largest, (?P<name>.+) \((?P<figure>{N})\), is "
        r"(?P<part>\d+%) of the sum of their absolute values\.",
        none_stands_out,
    ),
    Template("no pair", r"No pair of parts takes the score above or below the mean\.", no_pair),
    Template(
        "side",
        r"What “(?P<word>bank|river)” holds(?P<beside> beside what the other tokens hold)? makes "
        rf"(?P<sum>{N}), most by (?P<named>.+?\)){AGAINST}\.",
        side,
    ),
    Template(
        "apart",
        rf"Before the softmax (?:a softcap makes (?P<softcapped>{N}) of the score)?(?: and )?"
        rf"(?:(?P<bias>{N}) is added to it)?, which is no part of the split\.",
        apart,
    ),
]


def made(draw: random.Random) -> ScoreSources:
    """A random score: few parts or many, one large or none, of a key like the others or not."""
    random_numbers = torch.Generator().manual_seed(draw.randrange(1 << 30))
    parts, width = draw.choice((1, 2, 5, 12)), draw.choice((1, 2, 6))

    def side_of() -> SideParts:
        vectors = torch.randn(parts, width, generator=random_numbers, dtype=torch.float64)
        vectors[0] *= draw.choice((1, 8))
        writers = (Writer("token"), *(Writer("feed-forward", n) for n in range(parts - 1)))
        return SideParts(writers, vectors, vectors.sum(0), (1,))

    query, key, others = side_of(), side_of(), side_of()
    others = key if draw.random() < 0.1 else others
    scale = draw.choice((1.0, 0.125))
    numbers = [scale * float(query.whole @ each.whole) for each in (key, others)]
    return ScoreSources(
        query="bank", key="river", layer=3, head=5, part=draw.choice((None, "cross")), score=numbers[0],
        softcapped=draw.choice((None, draw.uniform(-9, 9))), bias=draw.choice((0.0, draw.uniform(-2, 2))),
        weight=draw.random(), mean=numbers[1], seen=draw.choice((1, 2, 11)), error=0.0, query_parts=query,
        key_parts=key, other_keys=others, scale=scale, tokens={None: encoded_ids([1, 2]).tokens},
    )  # type: ignore[arg-type]  # fmt: skip


def test_what_is_said_of_random_scores_holds() -> None:
    draw, spoke = random.Random(27), dict.fromkeys((each.name for each in TEMPLATES), 0)
    for _ in range(80):
        found = made(draw)
        for name, count in hold(of_score(found), found, TEMPLATES).items():
            spoke[name] += count
    assert all(spoke.values()), spoke
