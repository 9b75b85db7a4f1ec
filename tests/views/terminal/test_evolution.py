"""How attention formed fits one screen: of many steps some, the first and the last among them."""

from dataclasses import replace

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


@pytest.mark.parametrize("width", [80, 140])
def test_induction_has_a_column_and_with_all_every_head(width: int) -> None:
    found = planted(EVEN, SHARP, SHARP)
    found = replace(found, induction=[[[0.111 * n + 0.01 * h for h in range(20)]] for n in range(1, 4)])
    lines = printed(show_evolution_shortly, found, width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert any("induction" in line for line in lines)
    assert [line.split()[-1] for line in lines if "→" in line] == ["0.30", "0.41", "0.52"]
    every = printed(show_evolution, found, width=width).splitlines()
    assert max(map(len, every)) <= width
    text = " ".join(" ".join(every).split())
    assert all(f"0.{n}" in text for n in range(20))
    assert "0.523" in text


@pytest.mark.parametrize("show", [show_evolution_shortly, show_evolution])
def test_links_of_tokens_that_see_themselves_alone_are_no_strongest_links(show) -> None:
    told = "strongest: of tokens that may look at more than one"
    assert told in " ".join(printed(show, planted(EVEN, SHARP), width=140).split())
    free = [[0.4, 0.3, 0.3]] * 3
    assert told not in " ".join(printed(show, planted(free, free), width=140).split())
