"""Sentences about the logit lens, held against the ranks in all states."""

import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from regard.explain.logits.logit_lens import Layer, LogitLens
from regard.explain.logits.predictions import Candidate
from regard.questions.lens.answer import Lens
from regard.text.tokens import Token
from tests.said.templates import Groups, Template, hold, shows
from tests.support import in_text
from tests.support.summaries import bare_summary


def answer(draw: random.Random) -> SimpleNamespace:
    """A place of a text of some words, and what its states make of the model's own token."""
    words = draw.choices(["a", "bank", "river"], k=draw.randint(1, 4))
    tokens = in_text([Token(n, word, 6 * n, 6 * n + len(word), None, False) for n, word in enumerate(words)])
    ranks = [draw.choice([1, 1, 2, 40, 3000]) for _ in range(draw.randint(1, 5))]
    layers = [Layer(n, [], rank, draw.random()) for n, rank in enumerate(ranks)]
    token, final = draw.randrange(len(words)), Candidate(9, "of", draw.random())
    lens = LogitLens(0, token, words[token], draw.random() < 0.5, None, final, layers, 0.0)
    texts = [" ".join(words)] * draw.randint(1, 2)
    summary = replace(
        bare_summary("bank", [], None, [], 0), logit_lenses=[lens], tokens=[tokens], texts=texts, labels=["1", "2"]
    )
    return SimpleNamespace(summary=summary, side=draw.choice(["text", "target"]), lens=lens, ranks=ranks, words=words)


def place(groups: Groups, numbers: Any) -> None:
    lens, words = numbers.lens, numbers.words
    assert (groups["lead"] == "After") == lens.after
    assert groups["at"] == words[lens.token]
    assert groups["number"] == (str(lens.token) if words.count(words[lens.token]) > 1 else None)
    assert groups["where"] == (f" in {numbers.side} 1" if len(numbers.summary.texts) > 1 else None)
    shows(groups["chance"], lens.final.probability)


def every(groups: Groups, numbers: Any) -> None:
    place(groups, numbers)
    assert set(numbers.ranks) == {1}


def _state(groups: Groups) -> int:
    return 0 if groups["before"] is None else int(groups["before"]) + 1


def from_layer(groups: Groups, numbers: Any) -> None:
    place(groups, numbers)
    first = int(groups["since"] or "") + 1  # the state that leaves the layer
    assert set(numbers.ranks[first:]) == {1}
    assert _state(groups) == first - 1
    shows(groups["rank"], numbers.ranks[first - 1])
    assert numbers.ranks[first - 1] > 1


def otherwise(groups: Groups, numbers: Any) -> None:
    place(groups, numbers)
    assert _state(groups) == len(numbers.ranks) - 1
    shows(groups["rank"], numbers.ranks[-1])
    assert numbers.ranks[-1] > 1


SAYS = (
    r"(?P<lead>After|In the place of) “(?P<at>\w+)”(?: \((?P<number>\d)\))?(?P<where> in \w+ 1)? the model would say "
    r"“of” \((?P<chance>[\d.]+)\)"
)
RANK = r"of rank (?P<rank>[\d,]+) (?:as it enters layer 0|after layer (?P<before>\d))\."
TEMPLATES = [
    Template("every", SAYS + r", and so would every state\.", every),
    Template("from a layer", SAYS + r": the likeliest from layer (?P<since>\d) on, and " + RANK, from_layer),
    Template("otherwise", SAYS + r", though it is " + RANK, otherwise),
]


def test_every_sentence_about_random_lenses_is_true() -> None:
    spoke: Counter[str] = Counter()
    draw = random.Random(3)
    for _ in range(150):
        each: Any = answer(draw)
        spoke += hold(Lens.findings(each), each, TEMPLATES)
    assert set(spoke) == {each.name for each in TEMPLATES}
