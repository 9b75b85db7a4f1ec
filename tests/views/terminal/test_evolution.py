"""How attention formed fits one screen: of many steps some, the first and the last among them."""

import pytest

from regard.views.terminal.evolution import MOST_ROWS, show_evolution, show_evolution_shortly
from tests.explain.findings.test_evolution import EVEN, SHARP, planted
from tests.support.terminal import printed


@pytest.mark.parametrize("width", [60, 80, 140])
def test_one_screen(width: int) -> None:
    found = planted(*([EVEN, SHARP] * 30))
    lines = printed(show_evolution_shortly, found, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert len(lines) <= 40 or width < 80
    out = " ".join(" ".join(lines).split())
    assert f"{60 - MOST_ROWS} of 60 steps are left out here" in out
    if width >= 80:
        steps = [line.split()[0] for line in lines if "→" in line]
        assert (len(steps), steps[0], steps[-1]) == (MOST_ROWS, "0", "590")


def test_what_lies_between_rows_is_added_up() -> None:
    found = planted(*([EVEN, SHARP] * 30))
    lines = printed(show_evolution_shortly, found, width=140).splitlines()
    changes = [float(line.split()[2]) for line in lines if "→" in line]
    assert sum(changes) == pytest.approx(sum(found.change), abs=1e-3)


def test_every_step_on_request() -> None:
    assert printed(show_evolution, planted(*([EVEN, SHARP] * 30))).count("→") == 60
