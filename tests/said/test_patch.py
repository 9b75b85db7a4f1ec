"""What `patch` says of a sweep is true of all of its cells, those by construction named apart."""

import random
import re

from regard.questions.patch.answer import PatchSweep
from tests.said.templates import Groups, Template, hold, shows

Cell = tuple[int, int]
TOKENS = ("the 0", "quiet 1", "bank 2", ". 3")
SOURCES = ("the", "loud", "bank", ".")


def without_stops(said: list[str]) -> list[str]:
    """Sentences as the templates have them: each begins large and ends with a full stop."""
    assert all(each[0] == each[0].upper() and each.endswith(".") for each in said)
    return [each[0].lower() + each[1:-1] for each in said]


def cell_of(name: str, sweep: PatchSweep) -> Cell:
    """The cell of a name as sentences have it: “bank” (2) in layer 3, head 4 entering layer 0."""
    at = r"(?P<at>entering layer 0|in layer \d+)"
    found = re.fullmatch(
        rf"(?:“(?P<token>.+)” \((?P<n>\d+)(?:, “(?P<there>\w+)” put in)?\)|(?P<head>head \d+)) {at}", name
    )
    assert found, name
    column = sweep.columns.index(found["head"] or f"{found['token']} {found['n']}")
    if found["n"]:
        own, there = found["token"], sweep.sources[column] if sweep.sources else found["token"]
        assert found["there"] == (None if there == own else there)
    layer = "input" if found["at"].startswith("entering") else int(found["at"].removeprefix("in layer "))
    return sweep.layers.index(layer), column  # type: ignore[arg-type]


def share(cell: Cell, sweep: PatchSweep) -> float:
    return (sweep.outcomes[cell[0]][cell[1]] - sweep.run) / (sweep.source - sweep.run)


def every(sweep: PatchSweep) -> list[Cell]:
    return [(row, column) for row in range(len(sweep.layers)) for column in range(len(sweep.columns))]


def apart(sweep: PatchSweep) -> set[Cell]:
    return {(row, column) for row, column, _ in sweep.given}


def intro(groups: Groups, sweep: PatchSweep) -> None:
    texts = (sweep.corrupted, sweep.clean)
    assert (groups["read"], groups["other"]) == (texts if sweep.direction == "denoising" else texts[::-1])
    assert (groups["direction"], groups["what"]) == (sweep.direction, sweep.what)
    assert (groups["by"] == "head") == (sweep.by == "heads")


def ends(groups: Groups, sweep: PatchSweep) -> None:
    assert (f"{sweep.run:.3g}".replace("-", "−"), f"{sweep.source:.3g}".replace("-", "−")) == (
        groups["run"], groups["source"]
    )  # fmt: skip


def no_way(groups: Groups, sweep: PatchSweep) -> None:
    assert sweep.run == sweep.source


def step(groups: Groups, sweep: PatchSweep) -> None:
    """No layer brings more to any place, but where an estimate stands for what is so by construction.

    Where a patch changes nothing at all may be a larger rise, from below 0, and the sentence then speaks of the others.
    """
    row, column = cell_of(f"{groups['place']} in layer {groups['layer']}", sweep)
    before, after = share((row - 1, column), sweep), share((row, column), sweep)
    shows(groups["before"], before)
    shows(groups["after"], after)
    depth = [-1 if each == "input" else each for each in sweep.layers]
    rises = {
        (n, k): share((n, k), sweep) - share((n - 1, k), sweep)
        for n, k in every(sweep)
        if n and depth[n] == depth[n - 1] + 1  # type: ignore[operator]
        if (n, k) not in apart(sweep) or abs(share((n, k), sweep) - 1) < 0.005
    }
    still = [rise for cell, rise in rises.items() if abs(share(cell, sweep)) > 1e-4]
    assert abs(after - before - max(still)) < 1e-12
    assert bool(groups["still"]) == (max(rises.values()) > max(still))


def furthest(groups: Groups, sweep: PatchSweep) -> None:
    """Nothing that is not left out is further; then the best of other places, or heads, of what is more than 0 %."""
    left_out = apart(sweep) if groups["aside"] else set()
    assert left_out == apart(sweep)
    assert groups["to"] == ("clean" if sweep.direction == "denoising" else "corrupted")
    assert groups["of"] in (None, "heads" if sweep.by == "heads" else "places")
    best: dict[object, float] = {}
    for cell in every(sweep):
        if cell not in left_out and (far := abs(share(cell, sweep))) >= 0.005:
            which = cell if sweep.by == "heads" else cell[1]
            best[which] = max(far, best.get(which, 0.0))
    values = sorted(best.values(), reverse=True)[:3]
    others = re.findall(rf"(?:, | and |^)(.+?) \(({P})\)", groups["others"] or "")
    for (name, figure), value in zip([(groups["first"] or "", groups["share"]), *others], values, strict=True):
        cell = cell_of(name, sweep)
        assert cell not in left_out
        shows(figure, share(cell, sweep))
        assert abs(abs(share(cell, sweep)) - value) < 1e-12


def nothing(groups: Groups, sweep: PatchSweep) -> None:
    assert bool(groups["aside"]) == bool(apart(sweep))
    assert all(abs(share(cell, sweep)) < 0.005 for cell in every(sweep) if cell not in apart(sweep))


def given(groups: Groups, sweep: PatchSweep) -> None:
    """Each that is so by construction is told once, with its reason, and where it is estimated with the estimate."""
    reasons = {
        "elsewhere": "as the texts hold the same everywhere else there",
        "read": "as the outcome is read there, after the last layer",
    }
    left = {(row, column): reason for row, column, reason in sweep.given}
    for each in (groups["cells"] or "").split("; "):
        found = re.fullmatch(r"(?P<name>.+?)(?: \(estimated here as (?P<estimates>[^)]+)\))?, (?P<why>as .+)", each)
        assert found, each
        rows = re.fullmatch(r".+ in (?P<count>\d+) rows, the first (?P<first>.+)", found["name"])
        first = cell_of(rows["first"] if rows else found["name"], sweep)
        reason = left[first]
        assert found["why"] == reasons[reason]
        cells = sorted(cell for cell, why in left.items() if cell[1] == first[1] and why == reason)
        assert cells[0] == first
        assert len(cells) == (int(rows["count"]) if rows else 1)
        figures = (found["estimates"] or "").replace(" and ", ", ").split(", ") if found["estimates"] else []
        for figure, cell in zip(figures, [c for c in cells if abs(share(c, sweep) - 1) > 0.005], strict=True):
            shows(figure, share(cell, sweep))
        for cell in cells:
            left.pop(cell)
    assert not left


P = r"−?\d+%"
TEMPLATES = [
    Template(
        "intro",
        r"(?P<direction>denoising|noising): the model reads '(?P<read>.+)' with (?P<what>\w+) of '(?P<other>.+)' put "
        r"in, one (?P<by>head|place) at a time(?:, .+)?",
        intro,
    ),
    Template("ends", r"a number: (?P<run>\S+) without patches, (?P<source>\S+) in the other text", ends),
    Template("no way", r"both texts have the same outcome: there is no way between them to measure", no_way),
    Template(
        "step",
        r"of all layers and places(?P<still> from which the outcome is still read)?, layer (?P<layer>\d+) brings most "
        rf"to (?P<place>.+): from (?P<before>{P}) to "
        rf"(?P<after>{P}) of the way to the other's outcome",
        step,
    ),
    Template(
        "furthest",
        r"the patch of (?P<first>.+?) changes most: it goes "
        rf"(?P<share>{P}) of the way to the (?P<to>clean|corrupted) text's outcome"
        r"(?P<aside> \(those that do so by construction aside\))?"
        r"(?:; of other (?P<of>heads|places) go furthest (?P<others>.+))?",
        furthest,
    ),
    Template(
        "nothing",
        r"no patch(?P<aside> \(those that do so by construction aside\))? changed the outcome by 0\.5% of the way "
        r"to the other's",
        nothing,
    ),
    Template("given", r"by construction these go all of the way, whatever the model does: (?P<cells>.+)", given),
]


def made(draw: random.Random) -> PatchSweep:
    """A random sweep of states, of feed-forward outputs or of heads, of some layers, some cells by construction."""
    what = draw.choice(("hidden_states", "hidden_states", "hidden_states", "feed_forward", "head_outputs"))
    by = "heads" if what == "head_outputs" else "positions"
    every = ["input", *range(4)] if what == "hidden_states" else list(range(4))
    layers = tuple(each for each in every if draw.random() < 0.8) or (0,)
    columns = TOKENS if by == "positions" else tuple(f"head {n}" for n in range(3))
    run, source = draw.uniform(-2, 2), draw.choice((None, draw.uniform(-2, 2), draw.uniform(-2, 2)))
    source = run if source is None else source
    quiet = draw.random() < 0.2
    shares = [
        [0.0 if quiet else draw.choice((0, 0.001, 0.3, 1)) * draw.uniform(-1, 1.5) for _ in columns] for _ in layers
    ]
    cells = []
    if what == "hidden_states" and source != run:
        every_cell = [(n, k) for n in range(len(layers)) for k in range(len(columns))]
        cells = [(*cell, draw.choice(("elsewhere", "read"))) for cell in every_cell if draw.random() < 0.15]
    estimated = draw.random() < 0.3
    for n, k, _ in cells:
        shares[n][k] = draw.uniform(-1, 2) if estimated else 1.0
    outcomes = [[run + each * (source - run) for each in row] for row in shares]
    return PatchSweep(
        what, by, draw.choice(("denoising", "noising")), "a river bank", "a money bank", "a number", run, source,
        layers, columns, outcomes, given=tuple(cells), sources=draw.choice(((), SOURCES)) * (by == "positions"),
    )  # type: ignore[arg-type]  # fmt: skip


def test_what_is_said_of_random_sweeps_holds() -> None:
    draw, spoke = random.Random(27), dict.fromkeys((each.name for each in TEMPLATES), 0)
    for _ in range(200):
        sweep = made(draw)
        for name, count in hold(without_stops(sweep.findings()), sweep, TEMPLATES).items():
            spoke[name] += count
    assert all(spoke.values()), spoke
