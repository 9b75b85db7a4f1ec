"""The sentences of `patch` name the right cells of random sweeps, trivial patches apart."""

import random
import re
from typing import Any

import pytest

from regard.questions.patch.answer import PatchSweep
from tests.said.reading import names_in, numbers_in, shown_with_its_numbers, shows

TOKENS = ("the 0", "quiet 1", "bank 2", ". 3")
Cell = tuple[int, int]


def made(draw: random.Random) -> PatchSweep:
    """A random sweep of hidden states, MLP outputs or heads, some layers left out, some cells trivial."""
    what: Any = draw.choice(("hidden_states", "hidden_states", "feed_forward", "head_outputs"))
    by: Any = "heads" if what == "head_outputs" else "positions"
    every: Any = ["input", *range(4)] if what == "hidden_states" else list(range(4))
    layers = tuple(layer for layer in every if draw.random() < 0.8) or (0,)
    columns = TOKENS if by == "positions" else tuple(f"head {n}" for n in range(3))
    run, source, scale = draw.uniform(-2, 2), draw.uniform(-2, 2), draw.choice((0.005, 1.0, 1.0, -1.0))
    shares = [[scale * draw.choice((0, 0.3, 1)) * draw.uniform(-0.5, 1.5) for _ in columns] for _ in layers]
    cells: Any = [(n, k, draw.choice(("elsewhere", "read"))) for n in range(len(layers)) for k in range(len(columns))]
    given = [cell for cell in cells if draw.random() < 0.15] if what == "hidden_states" else []
    method: Any = draw.choice((None, None, "attribution-patching"))
    for n, k, _ in given:
        shares[n][k] = draw.uniform(-1, 2) if method else 1.0
    outcomes = [[run + share * (source - run) for share in row] for row in shares]
    return PatchSweep(
        what, by, draw.choice(("denoising", "noising")), "a river bank", "a money bank", "number", run, source, layers,
        columns, outcomes, given=tuple(given), method=method,
    )  # fmt: skip


def cells_in(sentence: str, sweep: PatchSweep) -> list[Cell]:
    """The cells that a sentence names: “bank” (2) at the input, layer 3, head 1."""
    places = re.findall(r"“(.+?)” \((\d)\) at (?:the |layer )(input|\d)", sentence)
    heads = re.findall(r"layer (\d), head (\d)", sentence)
    found = [(layer, sweep.columns.index(f"{name} {n}")) for name, n, layer in places]
    found += [(layer, int(head)) for layer, head in heads]
    return [(sweep.layers.index("input" if row == "input" else int(row)), column) for row, column in found]


@pytest.mark.parametrize("seed", range(80))
def test_the_best_patch_is_named_and_trivial_ones_are_not_counted(seed: int) -> None:
    sweep = made(random.Random(seed))
    shown_with_its_numbers(
        sweep, also=[0.01, len(sweep.given) - 2, *(100 * x for row in sweep.shares for x in row), 1.0]
    )
    first, *rest = sweep.findings()
    trivial = {cell[:2] for cell in sweep.given}
    shares = {
        (n, k): share for n, row in enumerate(sweep.shares) for k, share in enumerate(row) if (n, k) not in trivial
    }
    above = {cell: share for cell, share in shares.items() if share >= 0.01}
    if trivial:
        assert set(cells_in(rest[-1], sweep)) <= trivial
        assert len(cells_in(rest.pop(), sweep)) == min(2, len(trivial))
    best = max(above, key=lambda cell: above[cell]) if above else None
    assert cells_in(first, sweep) == ([best] if best else [])
    assert best is None or (sweep.direction == "denoising") == ("clean" in first)
    if best:
        shows(numbers_in(first)[-1], above[best])
    others = {cell: share for cell, share in above.items() if best and (cell[1] != best[1] or sweep.by == "heads")}
    others.pop(best, None)  # type: ignore[arg-type]
    named = max(others, key=lambda cell: others[cell], default=None)
    assert [cells_in(sentence, sweep) for sentence in rest] == ([[named]] if named else [])
    if named:
        shows(numbers_in(rest[0])[-1], shares[named])


def test_texts_with_the_same_outcome_have_no_best_patch() -> None:
    sweep = PatchSweep(
        "hidden_states", "positions", "denoising", "a", "b", "number", 1.0, 1.0, (0,), TOKENS, [[1.0, 2.0, 0.5, 1.0]]
    )
    assert len(sweep.findings()) == 1
    assert not names_in(sweep.findings()[0])
