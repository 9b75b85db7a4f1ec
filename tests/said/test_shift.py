"""The sentences on a change of meaning, held against every sense's counts on both sides and against all tests."""

import random
import re
from typing import get_args

import numpy as np

from regard.corpus.asking.change import Change
from regard.corpus.asking.clusters import Clusters
from regard.corpus.asking.occurrences import Occurrences
from regard.corpus.asking.sense_shares import sense_share_test
from regard.corpus.store_tables import StoreTables
from regard.questions.shift.answer import Fate, SharedSense, Shift, _fate_of_sense
from regard.questions.shift.sentences import of_shift
from tests.said.templates import Groups, Template, hold, shows
from tests.said.test_senses import UNSUPPORTED

CHANCE, ABSENT, PRESENT, LEAST = 0.05, 0.02, 0.10, 5  # as docs/corpus.md has them
P = r"p = (?P<p>[\d.e-]+)"
COUNTS = (
    r"(?P<n1>[\d,]+) of (?P<of1>[\d,]+) occurrences in old \((?P<s1>\d+%)\), "
    r"(?P<n2>[\d,]+) of (?P<of2>[\d,]+) occurrences in new \((?P<s2>\d+%)\)"
)
AMONG = r", corrected for (?P<k>\d+) senses"


def labels(found: Shift, side: int) -> np.ndarray:
    """The senses of one side's occurrences."""
    first = len(found.found[0])
    return found.clusters.labels[first:] if side else found.clusters.labels[:first]


def counted(said: Groups, found: Shift) -> tuple[list[float], int]:
    """A sense's shares of both sides, counted anew and as printed; and how many occurrences it has."""
    number, shares, all_of_it = int(str(said["name"])) - 1, [], 0
    for side in range(2):
        own = labels(found, side)
        count = int((own == number).sum())
        assert [int(str(said[name]).replace(",", "")) for name in (f"n{side + 1}", f"of{side + 1}")] == [
            count,
            len(own),
        ]
        shows(said[f"s{side + 1}"], count / len(own))
        shares.append(count / len(own))
        all_of_it += count
    return shares, all_of_it


def p_of(said: Groups, found: Shift) -> float:
    """The p of the sense that is named, as printed; corrected for all senses there are."""
    sense = next(each for each in found.senses if each.name == said["name"])
    assert sense.p is not None
    assert float(f"{sense.p:.3g}") == float(f"{float(str(said['p'])):.3g}")
    assert (float(str(said["p"])) <= CHANCE) == (sense.p <= CHANCE)
    assert int(str(said["k"])) == len(found.senses)
    return sense.p


def whole(said: Groups, found: Shift) -> None:
    p = found.change.p
    assert float(f"{p:.3g}") == float(f"{float(str(said['p'])):.3g}")
    assert bool(said["more"]) == (p <= CHANCE)
    assert (said["of"], bool(said["alike"])) == (found.permuted, found.permuted == "occurrences")


def moved(said: Groups, found: Shift) -> None:
    """Gained or lost: nearly absent on one side, present on the other, often enough, and not by chance."""
    (before, after), count = counted(said, found)
    one, other = (before, after) if said["fate"] == "gained" else (after, before)
    assert one <= ABSENT
    assert other >= PRESENT
    assert count >= LEAST
    assert p_of(said, found) <= CHANCE


def unshown(said: Groups, found: Shift) -> None:
    """It looks gained or lost, and is too rare to be tested or not shown by the test."""
    (before, after), count = counted(said, found)
    one, other = (before, after) if said["fate"] == "gained" else (after, before)
    assert one <= ABSENT
    assert other >= PRESENT
    if said["p"] is None:
        assert count < LEAST
    else:
        assert p_of(said, found) > CHANCE


def another(said: Groups, found: Shift) -> None:
    shares, _ = counted(said, found)
    assert p_of(said, found) <= CHANCE
    assert shares[0] != shares[1]


def none(said: Groups, found: Shift) -> None:
    """No sense of all of them: counted anew."""
    assert int(str(said["k"])) == len(found.senses) == found.clusters.k
    for number in range(found.clusters.k):
        shares = sorted(float((labels(found, side) == number).mean()) for side in range(2))
        assert not (shares[0] <= ABSENT and shares[1] >= PRESENT)
        p = found.senses[number].p
        assert p is None or p > CHANCE


def apart(_: Groups, found: Shift) -> None:
    assert found.k is None
    assert len(found.senses) == 1


TEMPLATES = [
    Template("whole", r"“bank” differs between old and new (?:by (?P<more>more than chance)|no more than by chance)"
             rf": {P}, [\d,]+ permutations of (?P<of>documents|occurrences)"
             r"(?P<alike>, which takes those of one document as independent)?\.", whole),
    Template("moved", rf"Sense (?P<name>\d+) was (?P<fate>gained|lost): {COUNTS}; {P}{AMONG}\.", moved),
    Template("unshown", rf"It is not shown that sense (?P<name>\d+) was (?P<fate>gained|lost): {COUNTS}; "
             rf"(?:{P}{AMONG}, and 0\.05 or less is needed|it takes 5 occurrences to test it)\.", unshown),
    Template("another", rf"The share of sense (?P<name>\d+) differs by more than chance: {COUNTS}; "
             rf"{P}{AMONG}\.", another),
    Template("none", r"None of the (?P<k>\d+) senses came or went \(at most 2% of one side and at least 10% of the "
             r"other\), and none has a share that differs by more than chance\.", none),
    UNSUPPORTED,
    Template("apart", r"The senses of “bank” could not be told apart: .+", apart),
]  # fmt: skip


def side(count: int) -> Occurrences:
    rows, tables, names = np.arange(count), object.__new__(StoreTables), ("bank",) * count
    return Occurrences(tables, names, rows, rows, rows, rows, names, names, names)


def answer(draw: random.Random) -> Shift:
    """Random occurrences of random senses, of which some differ between the sides, tested as the library does it."""
    sizes, k = (draw.randint(2, 60), draw.randint(2, 60)), draw.choice([1, 2, 3, 5])
    weights = [[draw.choice([0, 1, 6]) + 0.01 for _ in range(k)] for _ in range(2)]
    weights[1] = weights[draw.choice([0, 1])]
    own = np.array([draw.choices(range(k), weights[n])[0] for n in range(2) for _ in range(sizes[n])])
    first = np.arange(len(own)) < sizes[0]
    tests = sense_share_test(own, first, np.arange(len(own)), k, rounds=199, seed=draw.randrange(100))
    senses = []
    for number, p in enumerate(tests):
        counts = tuple(int((own[part] == number).sum()) for part in (first, ~first))
        shares = counts[0] / sizes[0], counts[1] / sizes[1]
        fate = _fate_of_sense(*shares, p)
        assert fate in get_args(Fate)
        senses.append(SharedSense(str(number + 1), (counts[0], counts[1]), shares, fate, ((), ()), p))
    change = Change(0.1, (0.1, 0.1), 0.0, draw.choice([0.001, 0.05, 0.05004, 0.4]), 199, 0, sizes, sizes)
    permuted = draw.choice(["documents", "occurrences"])
    asked = None if k == 1 else draw.choice([None, k])
    tried = {asked: draw.choice([0.05, 0.3])} if asked else {2: 0.05}
    clusters = Clusters(own, np.ones((k, 3)), np.zeros(len(own)), tried, dict.fromkeys(tried, 0.1))
    return Shift(
        "bank", 5, ("old", "new"), change, permuted, tuple(senses), tried, (), (side(sizes[0]), side(sizes[1])),
        clusters, asked,
    )  # fmt: skip


def test_what_came_and_went_did_by_all_counts_and_tests() -> None:
    draw, spoke, fates = random.Random(27), set(), set()
    for _ in range(300):
        found = answer(draw)
        sentences = of_shift(found)
        spoke |= set(hold(sentences, found, TEMPLATES))
        told = {name for each in sentences for name in re.findall(r"[Ss]ense (\d+)", each)}
        moved_ones = {each.name for each in found.senses if each.fate != "kept"}
        assert moved_ones <= told  # none of them is passed over
        fates |= {each.fate for each in found.senses}
    assert spoke == {each.name for each in TEMPLATES}
    assert fates == set(get_args(Fate))
