"""What `heads` says of each score is true of the numbers of all heads, and of the tokens that they are means of."""

import random
import re

import numpy as np

from regard.display.answer import Read
from regard.explain.weights.head_means import HeadMeans
from regard.explain.weights.score_meanings import MEANINGS
from regard.questions.heads.answer import Heads
from regard.questions.heads.sentences import counts_finding, of_scores
from tests.said.templates import Groups, Template, hold, shows

OVER = {"next": "nexts", "duplicate": "duplicates", "induction": "inductions"}
OTHER = {"position": "content", "content": "position"}
N = r"[\d.,]+"


def table(groups: Groups, found: HeadMeans) -> dict[str, float]:
    """The numbers of a score by L0H2 and the like, those that there are."""
    values = found.scores[groups["name"] or ""]
    return {
        f"L{found.layers[row] if found.layers else row}H{head}": float(values[row, head])
        for row in range(values.shape[0])
        for head in range(values.shape[1])
        if values[row, head] == values[row, head]
    }


def over(groups: Groups, found: HeadMeans) -> None:
    """The count is of the tokens that this score is a mean of."""
    count = found.counts[OVER.get(groups["name"] or "", "queries")]
    assert groups["over"] == ("1 token" if count == 1 else f"{count:,} tokens")


def told(said: str | None) -> list[tuple[str, str]]:
    parts = (said or "").replace(") and ", "), ").split("), ")
    return [(name, rest.rstrip(")")) for name, rest in (part.split(" (", 1) for part in parts)]


def most(groups: Groups, found: HeadMeans) -> None:
    """Those named are first, in order, and who else has any is named too, up to three."""
    numbers, named = table(groups, found), told(groups["heads"])
    values = sorted(numbers.values(), reverse=True)
    assert len(named) == min(3, sum(each >= 0.005 for each in values))
    for n, (name, figure) in enumerate(named):
        assert numbers[name] == values[n]
        shows(figure, numbers[name])
        assert float(figure) > 0
    shows(groups["mean"], float(np.mean(values)))
    over(groups, found)


def none(groups: Groups, found: HeadMeans) -> None:
    values = table(groups, found).values()
    assert max(values) < 0.005
    assert bool(groups["zero"]) == (max(values) == 0)
    over(groups, found)


def no_number(groups: Groups, found: HeadMeans) -> None:
    assert not table(groups, found)


def against(groups: Groups, found: HeadMeans) -> None:
    """Of all heads that look, those named follow the one most above the other; where none is named none does."""
    name = groups["name"] or ""
    assert OTHER[name] == groups["other"]
    mine, other = table(groups, found), table({"name": OTHER[name]}, found)
    looked = table({"name": "looked"}, found)
    more = {head: mine[head] - other[head] for head in mine if looked[head] >= 0.1}
    assert int((groups["count"] or "").replace(",", "")) == len(more)
    values = sorted(more.values(), reverse=True)
    named = told(groups["heads"]) if groups["heads"] else []
    assert len(named) == min(3, sum(each >= 0.005 for each in values))
    for n, (head, figures) in enumerate(named):
        assert more[head] == values[n]
        for figure, number in zip(figures.split(" against "), (mine[head], other[head]), strict=True):
            shows(figure, number)
    shows(groups["mean"], float(np.mean(list(mine.values()))))
    over(groups, found)


def counts(groups: Groups, found: HeadMeans) -> None:
    shows(groups["queries"], found.counts["queries"])
    fewer = dict(each.split(" over ") for each in (groups["fewer"] or "").replace(" and ", ", ").split(", ") if each)
    for name in found.scores:
        count = found.counts[OVER.get(name, "queries")]
        assert (name in fewer) == (count != found.counts["queries"])
        assert name not in fewer or fewer[name] == f"{count:,}"


def titled(groups: Groups, found: HeadMeans) -> None:
    """A score's own sentence, with what it is a score of."""
    name = (groups["title"] or "").lower()
    assert MEANINGS[name].looks_at == groups["looks"]
    rest = groups["rest"] or ""
    hold([f"{name}: {rest[0].upper()}{rest[1:]}"], found, TEMPLATES)


def one_text(groups: Groups, found: HeadMeans) -> None:
    assert found.counts["queries"] == 12


def first(found: HeadMeans, name: str) -> tuple[str, float] | None:
    """The head that has most of a share, and its number; None where none has as much as is printed."""
    own = table({"name": name}, found)
    by = dict(own)
    if name in OTHER and "looked" in found.scores:
        looked, other = table({"name": "looked"}, found), table({"name": OTHER[name]}, found)
        by = {head: value - other[head] for head, value in own.items() if looked[head] >= 0.1}
    best = max(by, key=by.__getitem__, default=None)
    return None if best is None or by[best] < 0.005 else (best, own[best])


def the_largest_shares_come_first(said: list[str], found: HeadMeans) -> None:
    """No share of another head is larger than those that are told, and counts are told after them."""
    names = [each.split(" (")[0].lower() for each in said if re.match(r"[A-Z]\w+ \([^)]+\): ", each)]
    assert said[len(names)].startswith("The scores are means over ")
    told = [best for name in names if (best := first(found, name))]
    assert len(told) == len(names) <= 3
    assert [number for _, number in told] == sorted((number for _, number in told), reverse=True)
    shares = [best for name in found.scores if name not in ("entropy", "looked") and (best := first(found, name))]
    assert len({head for head, _ in told}) == len(told) == min(3, len({head for head, _ in shares}))
    for head, number in shares:
        assert number <= max(n for h, n in told if h == head) if head in dict(told) else number <= told[-1][1]


NAME, ENDS = r"(?P<name>\w+): ", rf"the mean of all heads is (?P<mean>{N}), over (?P<over>.+)\."
LOOKING = r"Of (?P<count>[\d,]+) heads that give the exchanged tokens 0\.1 of their attention or more, "
TEMPLATES = [
    Template("most", rf"{NAME}Heads? (?P<heads>.+\)) ha(?:s|ve) most of it; {ENDS}", most),
    Template(
        "none",
        rf"{NAME}No head has (?:any of it: it is (?P<zero>0 everywhere)|as much as 0\.005 of it), over (?P<over>.+)\.",
        none,
    ),
    Template("no number", rf"{NAME}There are no tokens .+, and so no number\.", no_number),
    Template(
        "against",
        rf"{NAME}{LOOKING}(?:heads? (?P<heads>.+\)) follows? \w+ most above|none follows \w+ more than) "
        rf"(?P<other>\w+); {ENDS}",
        against,
    ),
    Template("counts", r"The scores are means over (?P<queries>[\d,]+) tokens?(?: \((?P<fewer>.+)\))?\.", counts),
    Template("titled", r"(?P<title>[A-Z]\w+) \((?P<looks>[^)]+)\): (?P<rest>.+)", titled),
    Template(
        "one text",
        r"In one text a head may do something by chance: the mean over many says what it does as a rule\.",
        one_text,
    ),
]


def made(draw: random.Random) -> HeadMeans:
    """Random scores of some heads: shares, entropies, scores of no head, of no token, of heads that are not there."""
    shape = draw.randint(1, 3), draw.randint(1, 4)
    numbers = np.random.default_rng(draw.randrange(1 << 32))

    def scores(name: str) -> np.ndarray:
        values = numbers.random(shape) * draw.choice((1, 0.5, 0.01, 0.003, 0))
        if draw.random() < 0.15 and name in OVER:
            return np.full(shape, np.nan)
        return np.where(numbers.random(shape) < 0.1, np.nan, values) if name not in ("looked", *OTHER) else values

    kinds = [("previous", "next", "duplicate", "induction", "entropy"), ("position", "content", "looked")]
    found = {name: scores(name) for name in draw.choice(kinds)}
    if "looked" in found and draw.random() < 0.7:
        found["looked"] = numbers.random(shape)
    tokens = draw.choice((1, 12, 1234))
    counted = {"queries": tokens, "nexts": draw.choice((tokens, max(tokens - 1, 1))), "duplicates": 5, "inductions": 1}
    return HeadMeans(found, counted, draw.choice(((), tuple(range(2, 2 + shape[0])))))


def test_what_is_said_of_random_scores_holds() -> None:
    draw, spoke = random.Random(27), dict.fromkeys((each.name for each in TEMPLATES), 0)
    for _ in range(150):
        found = made(draw)
        about = Read((("a text", None),) * (1 if found.counts["queries"] == 12 else 2))
        said = Heads({"texts": found}, about=about).findings()
        the_largest_shares_come_first(said, found)
        for name, count in hold([*said, *of_scores(found), counts_finding(found)], found, TEMPLATES).items():
            spoke[name] += count
    assert all(spoke.values()), spoke
