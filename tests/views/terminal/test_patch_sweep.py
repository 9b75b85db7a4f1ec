"""A sweep of patches as it is printed."""

from dataclasses import replace

from regard.trace.display import plain
from regard.views.terminal.patch_sweep import render
from tests.explain.findings.test_patch_sweep import SWEEP


def test_shares_stand_in_their_layers_and_columns() -> None:
    shown = plain(render(SWEEP, 80)).splitlines()
    (header,) = [line for line in shown if "layer" in line and "text 1" in line]
    assert header.split() == ["layer", "clean", "0", "text", "1"]
    assert [line.split() for line in shown if line.split()[:1] in (["input"], ["0"])] == [
        ["input", "0.25", "0.00"],
        ["0", "-0.25", "1.00"],
    ]


def test_without_room_the_largest_are_shown() -> None:
    many = replace(SWEEP, columns=tuple(f"t {n}" for n in range(9)), outcomes=[[1.0] * 8 + [2.0]] * 2)
    shown = plain(render(many, 30))
    assert "t 8" in shown
    assert "7 more with" in shown
    assert "–" in plain(render(replace(SWEEP, source=1.0), 80))
