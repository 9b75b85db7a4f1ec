"""What the plane of a word's movement draws and says, for random states: true of every point, by plain loops.

Whatever is on a plane has every comparison right that its sentences speak of. The rest is not drawn.
"""

import re
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from regard.explain.vectors.movement import movement
from regard.explain.vectors.neutral import Neutral
from regard.questions.movement import plane_sentences
from regard.text.tokens import Token
from regard.text.words import Word
from regard.trace.status import Status
from regard.trace.trace import Trace
from tests.said.reading import names_in, numbers_in, reads
from tests.support.summaries import bare_summary

STATUS = Status("made up", (), "cpu", "float32", None, 0, None)
TIE = 1e-5


def made_up(states: list[torch.Tensor], name: str = "word") -> Trace:
    """A trace of these states (L, M), one token a row."""
    tokens = tuple(Token(n, f"{name}{n}", n, n + 1, n, False) for n in range(len(states[0])))
    text = name if len(tokens) == 1 else "x" * len(tokens)
    return Trace(text, tokens, None, None, None, None, tuple(states), states[-1], None, (), (), STATUS)


def in_sentences(reference: Trace, held: list[Trace]) -> Neutral:
    """What the library has beside a plane: the cosines of neutral sentences' ends to a reference word."""
    every = [cosine(each.last_hidden_state[0].double(), reference.last_hidden_state[0].double()) for each in held]
    return Neutral(reference.text, len(held), [sum(every) / len(every)], [min(every)], [max(every)])


def answer(seed: int, count: int, marks: int, width: int, control: int, layers: int = 2) -> Any:
    """A movement of random states, with what is needed to check it: every state, every reference word's end."""
    generator = torch.Generator().manual_seed(seed)
    states = [torch.randn(count, width, generator=generator) for _ in range(layers + 1)]
    states[0][:] = states[0][0]  # as a word enters every text
    ends = [torch.randn(1, width, generator=generator) for _ in range(marks)]
    neutral = [
        states[-1].mean(0, keepdim=True) + 0.3 * torch.randn(1, width, generator=generator) for _ in range(control)
    ]
    references = [made_up([end] * (layers + 1), f"r{n}") for n, end in enumerate(ends)]
    held = [made_up([end] * (layers + 1)) for end in neutral]
    text = made_up(states)
    words = [(text, Word(text.tokens[n].text, n, n + 1, (n,))) for n in range(count)]
    placed = [(each, Word("word0", 0, 1, (0,))) for each in held]
    ranges = [in_sentences(reference, held) for reference in references if held]
    moved = movement(words, [text], references, control=placed, ranges=ranges)
    labels = [str(n + 1) for n in range(count)]
    paths = torch.stack(states, 1).double()  # (count, states, M)
    return SimpleNamespace(
        movement=moved, summary=bare_summary("bank", labels, moved, [each.text for each in references], control),
        paths=paths, ends={f"r{n}": end[0].double() for n, end in enumerate(ends)},
        held=[each[0].double() for each in neutral],
    )  # fmt: skip


def cosine(a: torch.Tensor, b: torch.Tensor) -> float:
    return float(torch.cosine_similarity(a, b, dim=0))


def far(a: Any, b: Any) -> float:
    return float(torch.dist(torch.tensor(a).double(), torch.tensor(b).double()))


def to_references(numbers: Any) -> dict[tuple[str, str], float]:
    """The cosine of every end to every reference word, and the mean of the neutral sentences'."""
    found = {(str(n + 1), r): cosine(path[-1], end) for n, path in enumerate(numbers.paths)
             for r, end in numbers.ends.items()}  # fmt: skip
    for r, end in numbers.ends.items():
        if numbers.held:
            found["○", r] = sum(cosine(each, end) for each in numbers.held) / len(numbers.held)
    return found


def right(near: dict[Any, float], full: dict[Any, float]) -> None:
    """Assert that of every two that are compared the nearer has the larger cosine."""
    for one, other in combinations(full, 2):
        if abs(full[one] - full[other]) > TIE:
            assert (near[one] < near[other]) == (full[one] > full[other]), (one, other)


def seen_from_ends(numbers: Any) -> None:
    """From each end, each reference word and the neutral mean, the nearer point has the larger cosine."""
    moved = numbers.movement
    places = {str(n + 1): path[-1] for n, path in enumerate(moved.words)}
    if moved.neutral is not None:
        places["○"] = moved.neutral
    marks = dict(zip(numbers.ends, moved.references, strict=True))
    full = {pair: value for pair, value in to_references(numbers).items() if pair[0] in places}
    near = {(end, r): far(places[end], marks[r]) for end, r in full}
    for side in (0, 1):
        for name in {pair[side] for pair in full}:
            right(*({pair: v for pair, v in each.items() if pair[side] == name} for each in (near, full)))
    for label, leaves in zip(places, moved.leaves, strict=False):  # an arrow's direction, as seen from each ◆
        for r in marks if leaves and moved.neutral is not None else ():
            if abs(full[label, r] - full["○", r]) > TIE:
                assert (near[label, r] < near["○", r]) == (full[label, r] > full["○", r])


def seen_along(numbers: Any) -> None:
    """Along a path, from its start, and between paths at one layer."""
    moved = numbers.movement
    points = {(p, s): moved.words[p][n] for p in range(len(moved.words)) for n, s in enumerate(moved.states)}
    for p, s in points:
        others = [(q, t) for q, t in points if (q, t) != (p, s) and (q == p or t == s or s == 0)]
        near = {other: far(points[other], points[p, s]) for other in others}
        right(near, {(q, t): cosine(numbers.paths[q, t], numbers.paths[p, s]) for q, t in others})
    for p, q in combinations(range(len(moved.words)), 2):
        right({s: far(points[p, s], points[q, s]) for s in moved.states},
              {s: cosine(numbers.paths[p, s], numbers.paths[q, s]) for s in moved.states})  # fmt: skip


def leaves(numbers: Any) -> list[bool]:
    """Which ends leave the neutral range of some reference word, at the two decimals shown."""
    full, result = to_references(numbers), []
    for n in range(len(numbers.paths)):
        out = False
        for r, end in numbers.ends.items():
            own = [round(cosine(each, end), 2) for each in numbers.held]
            out |= bool(own) and not min(own) <= round(full[str(n + 1), r], 2) <= max(own)
        result.append(out)
    return result


@pytest.mark.parametrize("seed", range(24))
def test_what_is_drawn_is_right_and_what_is_not_right_is_not_drawn(seed: int) -> None:
    numbers = answer(seed, 1 + seed % 3, (0, 1, 2, 4, 7)[seed % 5], (3, 8, 24)[seed % 3], 12 * (seed % 2))
    moved, said = numbers.movement, " ".join(plane_sentences(numbers.summary))
    assert ";" not in said
    assert bool(moved.states) == (moved.tried[-1].wrong == 0)
    drawn = [path for path in moved.words if path] + [point for point in moved.references if point]
    assert bool(drawn) == bool(moved.states)
    if not moved.states:
        return
    (seen_from_ends if moved.fitted else seen_along)(numbers)
    assert str(numbers.paths.shape[-1]) in numbers_in(said)
    assert any(reads(printed, sum(moved.share)) for printed in re.findall(r"<?\d+%", said))
    assert not moved.fitted or {*numbers.ends, "bank"} <= {*names_in(said)}
    if moved.neutral is not None:
        assert moved.leaves == leaves(numbers)
        assert ("arrow leads to each end" in said) == all(moved.leaves)
    if len(moved.tried) > 1:
        assert moved.tried[0].disagreement in said
