"""Sentences about a run, held against its whole log: every update and every held-out loss."""

import math
import random
from collections import Counter
from typing import Any

from regard.questions.evolve.training import Training
from tests.said.templates import Groups, Template, hold, shows

VOCABULARY = 40


def log(draw: random.Random) -> list[dict[str, int | float | None]]:
    """Some updates, falling or not, and held-out losses of some of them, close to each other or not."""
    count, noise, slope = draw.choice([1, 2, 6, 130]), draw.choice([0.01, 0.3]), draw.choice([-1, -0.05, 0, 0.5])
    every = draw.choice([1, 2, 5, 1000])
    held, losses = draw.choice([-0.5, -0.02, 0.0, 0.4]), []
    for n in range(1, count + 1):
        loss = 3.5 + slope * n / count + noise * draw.random()
        kept = 3.6 + held * n / count + noise * draw.random()
        losses.append({"step": n, "loss": loss, "validation": kept if n % every == 0 else None})
    return losses


def ends(numbers: Any) -> tuple[float, float]:
    losses = [each["loss"] for each in numbers]
    size = max(1, len(losses) // 50)
    return sum(losses[:size]) / size, sum(losses[-size:]) / size


def fell(groups: Groups, numbers: Any) -> None:
    first, last = ends(numbers)
    shows(groups["first"], first)
    shows(groups["among"], math.exp(last))
    how = groups["how"]
    assert how == ("stayed at about" if abs(first - last) < 0.02 else "fell from" if last < first else "rose from")
    if groups["last"]:
        shows(groups["last"], last)
    shows(groups["size"] or "1", max(1, len(numbers) // 50))


def one(groups: Groups, numbers: Any) -> None:
    assert len(numbers) == 1
    shows(groups["last"], numbers[0]["loss"])
    shows(groups["among"], math.exp(numbers[0]["loss"]))


def chance(groups: Groups, numbers: Any) -> None:
    shows(groups["chance"], math.log(VOCABULARY))
    below = math.log(VOCABULARY) - ends(numbers)[1]
    if groups["below"]:
        shows(groups["below"], below)
    else:
        assert below < 0.02 + 1e-9


def held(numbers: Any) -> dict[int, float]:
    return {each["step"]: each["validation"] for each in numbers if each["validation"] is not None}


def at(groups: Groups, numbers: Any, step: str, loss: str, *, smallest: bool = False, last: bool = False) -> None:
    every, number = held(numbers), int(groups[step] or 0)
    shows(groups[loss], every[number])
    assert not smallest or every[number] == min(every.values()), f"the smallest is {min(every.values())}"
    assert not last or number == max(every)


def rises(groups: Groups, numbers: Any) -> None:
    at(groups, numbers, "best", "smallest", smallest=True)
    at(groups, numbers, "step", "loss", last=True)
    steps, every = sorted(held(numbers)), held(numbers)
    best, end = int(groups["best"] or 0), int(groups["step"] or 0)
    assert every[end] > every[best]

    def own(step: int) -> float:
        before = max([n for n in steps if n < step], default=0)
        losses = [each["loss"] for each in numbers if before < each["step"] <= step]
        return sum(losses) / len(losses)

    assert (groups["heart"] is not None) == (own(end) < own(best)), "learned its own texts: their loss has to fall"


def falling(groups: Groups, numbers: Any) -> None:
    at(groups, numbers, "step", "loss", smallest=True, last=True)
    before = sorted(held(numbers))[-2]
    assert held(numbers)[before] > held(numbers)[int(groups["step"] or 0)]


def beside(groups: Groups, numbers: Any) -> None:
    at(groups, numbers, "step", "loss", last=True)
    at(groups, numbers, "best", "smallest", smallest=True)


def only(groups: Groups, numbers: Any) -> None:
    assert len(held(numbers)) == 1
    at(groups, numbers, "step", "loss")


def gap(groups: Groups, numbers: Any) -> None:
    shows(groups["gap"], held(numbers)[max(held(numbers))] - ends(numbers)[1])


N = r"[\d.]+?"
AMONG = rf": as unsure as among (?P<among>{N}) equally likely tokens\."
TEMPLATES = [
    Template(
        "fell", rf"From step 1 to \d+ the loss (?P<how>\D+) (?P<first>{N})(?: to (?P<last>{N}))? nats a token(?:, each "
        rf"a mean of (?P<size>\d+) updates)?{AMONG}", fell,
    ),
    Template("one", rf"After one update the loss is (?P<last>{N}) nats a token{AMONG}", one),
    Template(
        "chance", rf"Guessing evenly among its 40 tokens would be (?P<chance>{N}); the run is (?:no better than that|"
        rf"(?P<below>{N}) below it)\.", chance,
    ),
    Template("only", rf"Held out the loss is (?P<loss>{N}) at step (?P<step>\d+)\.", only),
    Template(
        "rises", rf"Held out it was smallest at step (?P<best>\d+) \((?P<smallest>{N})\) and is (?P<loss>{N}) at step "
        r"(?P<step>\d+): since then it (?:(?P<heart>learned its own texts, not others)|rose)\.", rises,
    ),
    Template(
        "falling", rf"Held out it is smallest at its last evaluation, (?P<loss>{N}) at step (?P<step>\d+): still "
        r"falling\.", falling,
    ),
    Template(
        "beside", rf"Held out it is (?P<loss>{N}) at step (?P<step>\d+); smallest was (?P<smallest>{N}) at step "
        r"(?P<best>\d+)\.", beside,
    ),
    Template("gap", rf"On texts held out the loss is (?P<gap>{N}) larger than on those it trained on\.", gap),
]  # fmt: skip


def test_every_sentence_about_random_runs_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(1)
    for _ in range(300):
        each = log(draw)
        spoke += hold(Training(each, VOCABULARY).findings(), each, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
