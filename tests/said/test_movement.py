"""Where `see --compare` says that texts move a word: as the cosines to all reference words and their ranges are."""

import random
import re
from itertools import combinations

import pytest

from regard.explain.texts.occurrences import ComparedWord, Occurrence, OccurrencePair
from regard.explain.texts.summary import Summary, comparable, leaves_range
from regard.explain.vectors.neutral import Control, Massive, Neutral
from regard.questions.see.sentences import findings
from tests.said.reading import plain_and_few, reads

WORDS = ("river", "money", "loan", "deposit", "water", "a house")
WAY = r"(towards|away from) “(.+?)” \(cosine (\S+), usually (\S+) to (\S+?)\)"
BOTH = r"Both “bank” vectors move (towards|away from) “(.+?)” \(cosine (\S+) and (\S+), usually (\S+) to (\S+?)\)"


def drawn(draw: random.Random) -> Summary:
    """Draw a summary of random cosines: several words and texts, ranges wide and narrow, ties at two decimals."""
    words = WORDS[: draw.randint(1, len(WORDS))]
    one = draw.random() < 0.3  # one text that has all occurrences
    count = draw.randint(1, 5)
    labels = [f"1{'abcde'[n]}" if one and count > 1 else str(n + 1) for n in range(count)]
    digits = draw.choice([2, 3, 8])
    wide = draw.choice([0.0, 0.02, 0.2, 1.0])
    centre = {word: draw.uniform(-0.5, 0.8) for word in words}

    def cosine(word: str) -> float:
        return round(centre[word] + draw.choice([0.0, 0.004, 0.15]) * draw.uniform(-1, 1), digits)

    made = [[cosine(word) for word in words] for _ in labels]
    neutral = [
        Neutral(word, 39, [centre[word]], [round(centre[word] - wide * draw.random() / 4, digits)],
                [round(centre[word] + wide * draw.random() / 4, digits)])
        for word in words
    ]  # fmt: skip
    otherwise = [label for label in labels if draw.random() < 0.1]
    control = draw.choice([None, Control([], "3 of 39 neutral sentences have “bank”, 12 are needed", [])])
    if draw.random() < 0.8:
        control = Control([f"sentence {n}" for n in range(39)], None, otherwise)
    massive = [Massive("reference", word, "", 99.0) for word in words if draw.random() < 0.05]
    massive += [Massive("word", "bank", label, 99.0) for label in labels if draw.random() < 0.05]
    told_of = control is not None and control.refused is None
    return Summary(
        word="bank", top=5, layers=[], labels=[], windows=[], texts=[""] * (1 if one else count), tokens=[[]] * count,
        sinks=[[]] * count,
        occurrences=[Occurrence(label, 0, "bank", 0, 4, [1], None, [None], [], [], [], None) for label in labels],
        pairs=[OccurrencePair(a, b, True, 1.0, [None]) for a, b in combinations(labels, 2)],
        references=[
            ComparedWord(word, label, draw.random(), each, [each])
            for n, word in enumerate(words) for label, own in zip(labels, made, strict=True) for each in [own[n]]
        ],
        highlights=[], massive=massive,
        layer_updates=[], predictions=[], logit_lenses=[], statuses=[], reference_statuses=[], target=None,
        neutral=neutral if told_of else [], control=control,
    )  # fmt: skip


def two(value: float) -> float:
    """Round to the two decimals that are shown."""
    return float(f"{value:z.2f}")


def beyond(summary: Summary) -> dict[str, tuple[bool, float, str, str]]:
    """Of each occurrence that leaves a range: how far it does most, of which word and which way."""
    ranges = {neutral.word: (neutral.low[-1], neutral.high[-1]) for neutral in summary.neutral}
    gone = [out.name if out.kind == "reference" else out.of for out in summary.massive]
    gone += summary.control.otherwise if summary.control is not None else []
    found: dict[str, tuple[bool, float, str, str]] = {}
    for reference in summary.references:
        if reference.word not in ranges or reference.word in gone or reference.occurrence in gone:
            continue
        (low, high), value = ranges[reference.word], reference.last_hidden_state
        if two(low) <= two(value) <= two(high):
            continue
        most = value > high, max(value - high, low - value), reference.word, "towards" if value > high else "away from"
        found[reference.occurrence] = max(most, found.get(reference.occurrence, most))
    return found


@pytest.mark.parametrize("seed", range(200))
def test_a_move_is_that_to_the_word_whose_range_is_left_furthest(seed: int) -> None:
    summary = drawn(random.Random(seed))
    said, moves = findings(summary), beyond(summary)
    plain_and_few(said)
    named = re.findall(WAY, " ".join(said))
    for way, word, *cosines, low, high in re.findall(BOTH, " ".join(said)):
        named += [(way, word, cosine, low, high) for cosine in cosines]
        for cosine, occurrence in zip(cosines, summary.occurrences, strict=True):
            assert any(reads(cosine, r.last_hidden_state) for r in summary.references
                       if (r.word, r.occurrence) == (word, occurrence.label))  # fmt: skip
    assert len(named) == min(len(moves), 2 if len(summary.occurrences) == 2 else 1)
    wanted = (
        [moves[label] for label in sorted(moves)]
        if len(named) == 2
        else [max(moves.values(), default=None)] * len(named)
    )
    ranges = {neutral.word: (neutral.low[-1], neutral.high[-1]) for neutral in summary.neutral}
    for (way, word, value, low, high), (_, _, most, side) in zip(named, wanted, strict=True):
        assert (way, word) == (side, most)
        assert any(reads(value, r.last_hidden_state) for r in summary.references if r.word == word)
        assert reads(low, ranges[word][0])
        assert reads(high, ranges[word][1])
    for reference in summary.references:
        way = leaves_range(summary, reference.occurrence, reference.word, reference.last_hidden_state)
        assert way is None or reference.occurrence in moves
    compared = [comparable(summary, occurrence.label) for occurrence in summary.occurrences]
    stays = [sentence for sentence in said if "neutral" in sentence and "(" not in sentence]
    assert len(stays) == (bool(summary.neutral) and all(compared) and not moves)
