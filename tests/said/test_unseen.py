"""What is said of tokens that nobody looks at is true of every token's numbers."""

import random

from regard.questions.unseen.answer import NAMED, Look, Unseen
from regard.text.tokens import Token
from tests.said.templates import Groups, Template, hold, shows

TOKEN = r"“\w+” \(\d+(?:, special)?\)"


def number_of(named: str | None, found: Unseen) -> int:
    """The token's number; its text and whether it is special have to be right."""
    text, _, rest = (named or "").removeprefix("“").partition("” (")
    k = int(rest.rstrip(")").removesuffix(", special"))
    assert found.tokens[k].text == text
    assert found.tokens[k].special == rest.endswith(", special)")
    return k


def numbers_of(named: str | None, found: Unseen) -> list[int]:
    return [number_of(each, found) for each in (named or "").replace(") and ", "), ").replace("), ", ")\n").split("\n")]


def look_at(k: int, looks: "list[Look | None]") -> Look:
    look = looks[k]
    assert look is not None
    return look


def most_of(found: Unseen) -> dict[int, float]:
    return {k: look.weight for k, look in enumerate(found.most) if look is not None}


def gets(groups: Groups, look: Look, found: Unseen) -> None:
    shows(groups["weight"], look.weight)
    assert number_of(groups["query"], found) == look.query


def over(groups: Groups, found: Unseen) -> None:
    assert groups["over"] == ("the only" if found.heads == 1 else f"{found.heads:,}")


def nobody(groups: Groups, found: Unseen) -> None:
    """All that are below the least weight are counted, and the first ones named, the lowest first."""
    below = sorted((weight, k) for k, weight in most_of(found).items() if weight < float(groups["least"] or ""))
    assert float(groups["least"] or "") == found.least
    assert (int(groups["count"] or ""), int(groups["of"] or "")) == (len(below), len(most_of(found)))
    named = numbers_of(groups["named"], found)
    assert [most_of(found)[k] for k in named] == [weight for weight, _ in below[:NAMED]]
    assert len(named) + int(groups["more"] or 0) == len(below)
    assert (groups["them"] == "it") == (len(below) == 1)
    over(groups, found)


def none(groups: Groups, found: Unseen) -> None:
    numbers, k = most_of(found), number_of(groups["name"], found)
    assert numbers[k] == min(numbers.values()) >= found.least
    assert int(groups["count"] or 1) == len(numbers)
    gets(groups, look_at(k, list(found.most)), found)
    over(groups, found)


def one_head(groups: Groups, found: Unseen) -> None:
    """Of the unseen tokens it is the one whose largest weight in one head is least."""
    unseen = [k for k, weight in most_of(found).items() if weight < found.least]
    heads = {k: look_at(k, list(found.head)) for k in unseen}
    k = number_of(groups["name"], found)
    assert heads[k].weight == min(look.weight for look in heads.values())
    assert bool(groups["several"]) == (len(unseen) > 1)
    assert groups["head"] == f"L{heads[k].layer}H{heads[k].head}"
    gets(groups, heads[k], found)


def most(groups: Groups, found: Unseen) -> None:
    numbers, k = most_of(found), number_of(groups["name"], found)
    assert numbers[k] == max(numbers.values())
    gets(groups, look_at(k, list(found.most)), found)


def may_not(groups: Groups, found: Unseen) -> None:
    named = numbers_of(groups["named"], found)
    assert named == [k for k, count in enumerate(found.may) if count == 0]
    assert (groups["they"] == "it is") == (len(named) == 1)


GETS = rf"(?P<weight>[\d.]+) from (?P<query>{TOKEN})"
OVER = r"\((?:in |mean of all )(?P<over>the only|[\d,]+) heads?\)\."
TEMPLATES = [
    Template(
        "nobody",
        rf"Nobody looks at (?P<count>\d+) of (?P<of>\d+) tokens?, (?P<named>{TOKEN}(?:(?:, | and ){TOKEN})*)"
        rf"(?: and (?P<more>\d+) more)?: no other token gives (?P<them>it|any of them) (?P<least>[\d.]+) or more of "
        rf"its attention {OVER}",
        nobody,
    ),
    Template("none", rf"All (?P<count>\d+) tokens are looked at: even (?P<name>{TOKEN}), the least seen, gets {GETS} "
             rf"{OVER}", none),
    Template("one token", rf"The token (?P<name>{TOKEN}) is looked at: it gets {GETS} (?P<count>){OVER}", none),
    Template("one head", rf"In a single head (?P<name>{TOKEN})(?P<several>, the least of them,)? gets up to {GETS}, in "
             r"head (?P<head>L\d+H\d+)\.", one_head),
    Template("most", rf"Other tokens look most at (?P<name>{TOKEN}): {GETS}\.", most),
    Template("may not", r"No other token may look at (?P<named>.+): (?P<they>it is|they are) not counted\.", may_not),
]  # fmt: skip


def made(draw: random.Random) -> Unseen:
    """Random numbers of some tokens, some of them special, of the same text, or such that no other may look at."""
    size, heads = draw.choice((1, 2, 3, 7, 13)), draw.choice((1, 6, 1440))
    scale = draw.choice((1.0, 0.2, 0.05, 0.001))
    tokens = [Token(k, draw.choice(("a", "bank", "the")), k, k + 1, k, draw.random() < 0.2) for k in range(size)]
    may = [0 if size == 1 or draw.random() < 0.15 else size - 1 for _ in range(size)]
    weights = [draw.choice((draw.random(), 0.5, 0.0)) * scale for _ in range(size)]
    looks = [Look(weight, draw.randrange(size)) if seen else None for weight, seen in zip(weights, may, strict=True)]
    in_head = [
        None if look is None else Look(min(1.0, look.weight + draw.random() / 2), draw.randrange(size), 3, k % 5)
        for k, look in enumerate(looks)
    ]
    means = [None if look is None else look.weight / 2 for look in looks]
    layers = [[None if look is None else look.weight for look in looks]]
    least = draw.choice((0.05, 0.1, 0.5))
    return Unseen(tokens, least, heads, may, most=looks, mean=means, head=in_head, calls=[(3, 0)], layers=layers)


def test_what_is_said_of_random_looks_holds() -> None:
    draw, spoke = random.Random(29), dict.fromkeys((each.name for each in TEMPLATES), 0)
    for _ in range(300):
        found = made(draw)
        for name, count in hold(found.findings(), found, TEMPLATES).items():
            spoke[name] += count
    assert all(spoke.values()), spoke
