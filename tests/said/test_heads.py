"""What `heads` says of each score names the right heads, with their numbers."""

import random

import numpy as np

from regard.display.answer import Read
from regard.explain.weights.head_means import MEANINGS, HeadMeans
from regard.questions.heads import AGAINST, LOOKED, MIN_SCORE, Heads, score_sentence, top_heads
from tests.said.reading import numbers_in, plain_and_few, shown_with_its_numbers, shows

NAMES = ("previous", "next", "duplicate", "induction", "entropy")


def made(draw: random.Random) -> HeadMeans:
    """Random scores of some heads: shares, entropies, scores of no head, of no token, of heads that are not there."""
    shape = draw.randint(1, 3), draw.randint(1, 4)
    numbers = np.random.default_rng(draw.randrange(1 << 32))
    scores = {}
    for name in draw.choice((NAMES, ("position", "content", "looked"))):
        scores[name] = numbers.random(shape) * draw.choice((1, 1, 0.5, 0.01, 0.003, 0))
        if name in NAMES:
            scores[name] = np.where(numbers.random(shape) < draw.choice((0.1, 0.1, 1)), np.nan, scores[name])
    return HeadMeans(
        scores, {"queries": 12, "duplicates": 5, "inductions": 1}, draw.choice(((), tuple(range(2, 2 + shape[0]))))
    )


def best_of(found: HeadMeans, name: str) -> tuple[int, int, float] | None:
    """The head that a sentence has to name, and its score."""
    by = found.scores[name]
    if name in AGAINST:
        by = np.where(found.scores["looked"] >= LOOKED, by - found.scores[AGAINST[name]], np.nan)
    if np.isnan(by).all() or np.nanmax(by) < MIN_SCORE:
        return None
    row, head = np.unravel_index(np.nanargmax(by), by.shape)
    return found.layer(int(row)), int(head), float(found.scores[name][row, head])


def test_each_score_names_its_highest_head() -> None:
    draw, named = random.Random(27), set()
    for _ in range(150):
        found = made(draw)
        for name in found.scores:
            sentence, best = score_sentence(found, name), best_of(found, name)
            plain_and_few([sentence])
            named.add((name, best is None))
            if best is None:
                assert numbers_in(sentence) == []
                assert ("no tokens" in sentence) == bool(np.isnan(found.scores[name]).all())
                assert not top_heads(found, name)
                continue
            printed = [number.rstrip(",") for number in numbers_in(sentence)]
            layer, head, value = best
            at = sentence.lower().index("layer ")
            assert f"layer {layer}, head {head}" in sentence.lower()[at:]
            shows(next(each for each in printed if "." in each), value)
            assert top_heads(found, name)[0][0] == f"L{layer}H{head}"
            assert ("no head" in sentence.lower()) == (name not in (*AGAINST, "entropy") and value < LOOKED)
            assert ("almost only" in sentence) <= (value >= 0.95)
    assert len(named) > 10


def test_the_headlines_are_the_largest_shares_each_of_another_head() -> None:
    draw = random.Random(3)
    for _ in range(60):
        found = made(draw)
        answer = Heads({"texts": found}, about=Read((("a text", None),)))
        shown_with_its_numbers(answer, (*range(5),))
        shares = [name for name in found.scores if MEANINGS[name].looks_at and name != "entropy"]
        bests = sorted((best for name in shares if (best := best_of(found, name))), key=lambda best: -best[2])
        heads = list(dict.fromkeys(best[:2] for best in bests))[:3]
        assert len(answer.findings()) == len(heads)
        for sentence, (layer, head) in zip(answer.findings(), heads, strict=True):
            assert f"layer {layer}, head {head}" in sentence.lower()


def test_a_test_of_repeated_tokens_is_about_induction() -> None:
    scores = {"previous": np.array([[0.9, 0.1]]), "induction": np.array([[0.0, 0.3]])}
    found = HeadMeans(scores, {"queries": 12})
    answer = Heads({"texts": found, "random tokens, repeated": found})
    assert "head 0" in answer.findings()[0]
    assert "head 1" in answer.findings()[1]
    shows(numbers_in(answer.findings()[1])[-1], 0.3)
