"""The sentences on a change of meaning name the senses that came or went, by their counts and tests."""

import random
import re

import numpy as np

from regard.corpus.asking.change import Change, sense_share_test
from regard.corpus.asking.clusters import Clusters
from regard.corpus.questions.shift import SharedSense, Shift, _fate_of_sense, shift_sentences
from tests.corpus.questions.senses.test_sentences import occurrences
from tests.said.reading import numbers_in, plain_and_few, shows

CHANCE = 0.05


def answer(draw: random.Random) -> Shift:
    """Random occurrences of random senses, of which some differ between the groups, tested as the library does it."""
    sizes, k = (draw.randint(2, 60), draw.randint(2, 60)), draw.choice([1, 2, 3, 5, 8])
    weights = [[draw.choice([0, 1, 6]) + 0.01 for _ in range(k)] for _ in range(2)]
    weights[1] = weights[draw.choice([0, 1])]
    labels = np.array([draw.choices(range(k), weights[n])[0] for n in range(2) for _ in range(sizes[n])])
    first = np.arange(len(labels)) < sizes[0]
    tests = sense_share_test(labels, first, np.arange(len(labels)), k, rounds=199, seed=draw.randrange(100))
    senses = []
    for number, p in enumerate(tests):
        counts = tuple(int((labels[part] == number).sum()) for part in (first, ~first))
        shares = counts[0] / sizes[0], counts[1] / sizes[1]
        senses.append(SharedSense(str(number + 1), counts, shares, _fate_of_sense(*shares, p), ((), ()), p))
    change = Change(0.1, (0.1, 0.1), 0.0, draw.choice([0.001, 0.05, 0.05004, 0.4]), 199, 0, sizes, sizes)
    asked = None if k == 1 else draw.choice([None, k])
    tried = {asked: draw.choice([0.05, 0.3])} if asked else {2: 0.05}
    clusters = Clusters(labels, np.ones((k, 3)), np.zeros(len(labels)), tried, dict.fromkeys(tried, 0.1))
    found = occurrences(sizes[0]), occurrences(sizes[1])
    permuted = draw.choice(["documents", "occurrences"])
    return Shift("bank", 5, ("old", "new"), change, permuted, tuple(senses), (), found, clusters, asked)


def test_what_came_and_went_did_by_all_counts_and_tests() -> None:
    draw, seen = random.Random(27), set()
    for _ in range(400):
        result = answer(draw)
        sentences = shift_sentences(result)
        plain_and_few(sentences)
        p = numbers_in(sentences[0])[0]
        shows(p, result.change.p)
        assert (" not " in sentences[0]) == (result.change.p > CHANCE) == (float(p) > CHANCE)
        assert result.permuted in sentences[0]
        k, text = len(result.senses), " ".join(sentences)
        weak = (k == 1 or not result.clusters.separates(k)) if result.k or k == 1 else False
        assert ("needed" in text) == weak
        if k == 1:
            assert len(sentences) == 2
            continue
        names = {fate: [s.name for s in result.senses if s.fate == fate] for fate in ("gained", "lost")}
        for fate, verb in (("gained", "gains"), ("lost", "loses")):
            assert (f" {verb} " in text) == bool(names[fate])
            if names[fate]:
                part = re.split(r" gains | loses ", text[text.index(f" {verb} ") + len(verb) + 2 :].split(".")[0])[0]
                assert numbers_in(part) == (names[fate] if len(names[fate]) <= 3 else [str(len(names[fate]))])
                seen.add(fate if len(names[fate]) <= 3 else "many")
        significant = [s for s in result.senses if s.p is not None and s.p <= CHANCE]
        assert ("None of" in text) == (not significant)
        for sentence in sentences:
            if "largest" in sentence:
                name, before, after, p = numbers_in(sentence)
                largest = next(s for s in result.senses if s.name == name)
                shows(before, largest.shares[0])
                shows(after, largest.shares[1])
                shows(p, largest.p)
                change = abs(largest.shares[0] - largest.shares[1])
                assert change == max(abs(s.shares[0] - s.shares[1]) for s in significant)
                seen.add("largest")
    assert seen >= {"gained", "lost", "largest"}
