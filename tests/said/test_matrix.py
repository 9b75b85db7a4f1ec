"""Sentences about a layer's attention over a text name the right tokens, heads and numbers."""

import random

import pytest

from regard.explain.weights.sinks import sinks_of
from regard.questions.map.answer import Matrix
from regard.questions.map.whole import matrix
from tests.said.random_traces import trace_of
from tests.said.reading import names_in, numbers_in, plain_and_few, reads, shown_with_its_numbers

LENGTH, HEADS, LAYER = 14, 3, 0


def find(said: list[str], word: str) -> str:
    return next((sentence for sentence in said if word in sentence), "")


def means(found: Matrix) -> list[float]:
    heads = found.heads
    names = ("distance", "special", "sink_tokens")
    every = [[getattr(head, name) for head in heads] for name in names]
    return [sum(values) / len(values) for values in every]


def test_random_layers() -> None:
    draw, kinds = random.Random(5), set()
    for _ in range(40):
        trace = trace_of(draw, LENGTH, HEADS, 1)
        head, far = draw.choice([None, None, 1]), draw.choice([4, 4, LENGTH - 1, LENGTH])
        found = matrix(trace, LAYER, head, top=draw.choice([3, LENGTH]), far=far)
        said = found.findings()
        plain_and_few(said)
        distance, special, sinks = means(found)
        shown_with_its_numbers(found, (distance, special, sinks, far, LAYER, HEADS))
        dense = trace.attention[LAYER].dense().double()
        aside = {0} | {sink.token for sink in sinks_of(trace.attention, trace.tokens)}
        own = [n for n in range(LENGTH) if n not in aside]
        links = {
            (h, i, j): float(dense[h, i, j])
            for h in range(HEADS) if head in (None, h) for i in own for j in own if abs(i - j) > far
        }  # fmt: skip
        if found.pairs:
            h, i, j = max(links, key=links.__getitem__)
            assert names_in(said[0]) == [f"w{i}", f"w{j}"]
            assert numbers_in(said[0])[-1] == str(h)
            assert ("ahead" in said[0], "back" in said[0]) == (j > i, i > j)
            assert any(reads(printed, links[h, i, j]) for printed in numbers_in(said[0]))
            assert str(abs(i - j)) in numbers_in(said[0])
        else:
            assert not any(weight > 0 for weight in links.values())
            assert bool(find(said, "more than")) == (far < LENGTH)
        away = numbers_in(find(said, "on average"))
        assert any(reads(printed, distance) for printed in away)
        if head is None:
            heads = sorted(found.heads, key=lambda each: each.distance)
            assert (away[3], away[-1]) == (str(heads[0].head), str(heads[-1].head))
        shares = find(said, "of all attention")
        assert ("Special" in shares) == (special >= 0.005)
        receiver = find(said, "times the average")
        if receiver:
            received = (dense if head is None else dense[head : head + 1]).mean(0).sum(0)
            best = max(own, key=lambda n: float(received[n]))
            assert names_in(receiver) == [f"w{best}"]
            assert any(reads(printed, float(received[best])) for printed in numbers_in(receiver))
        kinds |= {bool(found.pairs), *(word for word in ("sinks receive", "from", "times the") if find(said, word))}
    assert kinds >= {True, False, "from", "times the"}


@pytest.mark.parametrize(("special", "sinks", "learned"), [(0.2, 0.3, 0.0), (0.0, 0.3, 0.0), (0.0, 0.0, 0.4)])
def test_what_takes_attention_is_named_only_where_it_does(special: float, sinks: float, learned: float) -> None:
    found = matrix(trace_of(random.Random(1), LENGTH, HEADS, 1), LAYER, far=4)
    for head in found.heads:
        for name, value in (("special", special), ("sink_tokens", sinks), ("sink", learned)):
            object.__setattr__(head, name, value)
    sentence = find(found.findings(), "of all attention")
    assert numbers_in(sentence) == [f"{value:.0%}" for value in (special, sinks, learned) if value]
