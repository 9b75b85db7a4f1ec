"""The sentences of a score name its strongest pair and components, the mean over all keys subtracted."""

import random

import torch

from regard.capture.gradients.score_path import SideParts, Writer
from regard.questions.why.score import ScoreSources
from regard.text.tokens import encoded_ids
from tests.said.reading import names_in, numbers_in, plain_and_few, shows


def random_score(draw: random.Random) -> ScoreSources:
    """Make a score: few or many components, a large one or none, a key like the others or not."""
    generator = torch.Generator().manual_seed(draw.randrange(1 << 30))
    parts, width = draw.choice((1, 2, 5, 12)), draw.choice((1, 2, 6))

    def side() -> SideParts:
        vectors = torch.randn(parts, width, generator=generator, dtype=torch.float64)
        vectors[0] *= draw.choice((1, 8))
        writers = (Writer("token"), *(Writer("feed-forward", n) for n in range(parts - 1)))
        return SideParts(writers, vectors, vectors.sum(0), (1,))

    query, key, others = side(), side(), side()
    others = key if draw.random() < 0.1 else others
    scale = draw.choice((1.0, 0.125))
    numbers = [scale * float(query.whole @ keys.whole) for keys in (key, others)]
    return ScoreSources(
        query="bank", key="river", layer=3, head=5, part=draw.choice((None, "cross")), score=numbers[0],
        softcapped=draw.choice((None, draw.uniform(-9, 9))), bias=draw.choice((0.0, draw.uniform(-2, 2))),
        weight=draw.random(), mean=numbers[1], seen=draw.choice((1, 2, 11)), error=0.0, query_parts=query,
        key_parts=key, other_keys=others, scale=scale, tokens={None: encoded_ids([1, 2]).tokens},
    )  # fmt: skip


def name(number: int) -> str:
    return "token embedding" if number == 0 else f"layer {number - 1}, feed-forward"


def test_random_scores() -> None:
    draw, lengths = random.Random(27), set()
    for _ in range(100):
        answer = random_score(draw)
        first, *more = answer.findings()
        plain_and_few([first, *more])
        lengths.add(len(more))
        pairs = answer.scale * answer.query_parts.vectors @ (answer.key_parts.vectors - answer.other_keys.vectors).T
        assert names_in(first)[:2] == ["bank", "river"]
        assert "layer 3, head 5" in first
        if answer.seen == 1:
            assert not more
            shows(numbers_in(first)[-1], answer.weight)
            continue
        weight, apart, seen = numbers_in(first)[-3:]
        shows(weight, answer.weight)
        shows(apart, abs(answer.score - answer.mean))
        assert int(seen) == answer.seen
        assert ("above" in first) == (answer.score >= answer.mean)
        size = float(pairs.abs().max())
        part = size / float(pairs.abs().sum()) if size else 0.0
        strongest = divmod(int(pairs.abs().argmax()), pairs.shape[1])
        totals = [pairs.sum(1), pairs.sum(0)]
        largest = [int(total.abs().argmax()) for total in totals]
        if part >= 0.1:
            before, _, after = more[0].partition("” with ")
            assert (name(strongest[0]) in before, name(strongest[1]) in after) == (True, True)
            shows(numbers_in(more[0])[-1], float(pairs[strongest]))
        elif size:
            count, percent = numbers_in(more[0])
            assert int(count) == pairs.numel()
            shows(percent, part)
        assert len(more) == (2 if size and tuple(largest) != strongest else 1)
        for sentence in more[1:]:
            printed = [number for number in numbers_in(sentence) if "." in number]
            for number, word, total, n in zip(printed, ("bank", "river"), totals, largest, strict=True):
                assert f"{name(n)} of “{word}”" in sentence
                shows(number, float(total[n]))
    assert lengths == {0, 1, 2}
