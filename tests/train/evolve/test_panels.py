"""How attention formed fits one screen: of many steps some, the first and the last among them."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from regard.display.answer import panel_data
from regard.display.panels import Heat, Panel, Scatter
from regard.display.terminal_parts import plain_lines_of_parts
from regard.train.evolve import panels
from regard.train.evolve.answer import Evolution, evolution
from regard.train.evolve.panels import MOST
from regard.web.html_file import script_json
from tests.support.own_models import opened
from tests.train.evolve.test_answer import EVEN, SHARP, planted


def shown(found: Evolution, width: int, *, everything: bool = False) -> list[str]:
    return plain_lines_of_parts(found.shown(width, 1_000_000, everything=everything), width)


def panel_of(found: Evolution, name: str) -> Any:
    panels: dict[str, Panel] = {panel.name: panel for panel in found.panels()}
    return panels[name]


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(width: int) -> None:
    found = planted(*([EVEN, SHARP] * 30))
    lines = shown(found, width)
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    out = " ".join(" ".join(lines).split())
    assert f"{MOST} of 60 steps" in out
    if width >= 80:
        steps = [line.split()[0] for line in lines if "→" in line]
        assert (len(steps), steps[0], steps[-1]) == (MOST, "0", "590")


def test_what_lies_between_rows_is_added_up() -> None:
    found = planted(*([EVEN, SHARP] * 30))
    lines = shown(found, 140)
    changes = [float(line.split()[2]) for line in lines if "→" in line]
    assert sum(changes) == pytest.approx(sum(found.change), abs=0.005 * len(changes))


def test_every_step_on_request() -> None:
    assert "\n".join(shown(planted(*([EVEN, SHARP] * 30)), 80, everything=True)).count("→") == 60


@pytest.mark.parametrize("width", [80, 140])
def test_induction_has_a_column_and_with_all_every_head(width: int) -> None:
    found = planted(EVEN, SHARP, SHARP)
    found = replace(found, induction=[[[0.111 * n + 0.01 * h for h in range(20)]] for n in range(1, 4)])
    lines = shown(found, width)
    assert max(map(len, lines)) <= width
    assert any("induction" in line for line in lines)
    assert [line.split()[-1] for line in lines if "→" in line] == ["0.30", "0.41", "0.52"]
    every = shown(found, width, everything=True)
    assert max(map(len, every)) <= width
    heads = [line.split() for line in every if line.split()[:1] in [[f"L0H{n}"] for n in range(20)]]
    assert [head[0] for head in heads] == [f"L0H{n}" for n in reversed(range(20))]  # those first that end highest
    assert (heads[0][-2], heads[0][-1]) == ("0.30", "0.52")
    assert panel_of(found, "Induction").series[0].y == found.induction_of(0, 19)


def test_a_head_without_scores_has_no_line() -> None:
    found = replace(planted(EVEN, SHARP), induction=[[[float("nan"), 0.1]], [[float("nan"), 0.2]]])
    assert [curve.name for curve in panel_of(found, "Induction").series] == ["L0H1"]


def test_links_of_tokens_that_see_themselves_alone_are_no_strongest_links() -> None:
    noted = "Strongest link leaves out tokens that can attend to one token only"
    assert noted in panel_of(planted(EVEN, SHARP), "Step by step").note
    free = [[0.4, 0.3, 0.3]] * 3
    assert noted not in panel_of(planted(free, free), "Step by step").note


def test_how_attention_formed_on_a_page() -> None:
    model = opened("gpt")
    traces = [(step, model.trace("A man is fishing")) for step in (0, 10, 20)]
    found = evolution(traces, 1)
    first, last, difference, entropy, change, table, points = found.tabs()
    assert [each.series[0].y for each in (entropy, change)] == [found.entropy, found.change]
    assert isinstance(first, Heat)
    assert isinstance(last, Heat)
    assert isinstance(difference, Heat)
    assert isinstance(points, Scatter)
    for panel, values in ((first, found.weights[0]), (last, found.weights[2]), (difference, found.from_start(2))):
        assert [[value or 0.0 for value in row] for row in panel.values] == values
    assert first.largest == last.largest == max(w for n in (0, 2) for row in found.weights[n] for w in row)
    assert (first.name, last.name, difference.signed, table.name) == ("Step 0", "Step 20", True, "Step by step")
    assert [each.after for each in points.points[:4]] == [None, 0, 1, None]
    assert len(points.points) == 3 * len(found.embedded)
    assert [panel.name for panel in evolution(traces[:1], 1).tabs()][:2] == ["Step 0", "Step by step"]
    script_json({"panels": [panel_data(panel) for panel in found.tabs()]})


def test_a_blank_has_a_mark() -> None:
    found = planted(EVEN, SHARP, names=("a", " ", "b"))
    assert panel_of(found, "Step 0").rows == ["a", "␣", "b"]


def test_the_last_grid_has_every_step_for_a_slider(monkeypatch: pytest.MonkeyPatch) -> None:
    found = planted(EVEN, SHARP, EVEN)
    first, last = (panel_of(found, f"Step {found.steps[n]}") for n in (0, -1))
    assert first.over is None
    assert last.over.titles == [f"Step {step}" for step in found.steps]
    shown = [[[value or 0.0 for value in row] for row in grid] for grid in last.over.values]
    torch.testing.assert_close(torch.tensor(shown), torch.tensor(found.weights).float(), rtol=0, atol=5e-5)
    assert last.largest == first.largest == max(w for table in found.weights for row in table for w in row)
    assert "leaves out" not in last.note
    monkeypatch.setattr(panels, "CELLS", 1)
    few = panel_of(found, f"Step {found.steps[-1]}")
    assert few.over.titles == [first.title, last.title]
    assert few.note.endswith(f"leaves out {len(found.steps) - 2} of {len(found.steps)} steps.")
