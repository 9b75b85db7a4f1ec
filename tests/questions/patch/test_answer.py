"""A sweep of patches: fractions, rows and JSON, and its page and plot compared with it."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from regard.display.canvas import all_axes
from regard.questions.patch.answer import PatchSweep, describe_patch
from regard.web.html_file import script_json
from tests.said.reading import names_in, numbers_in, shows

SWEEP = PatchSweep(
    "hidden_states", "positions", "denoising", "clean text", "bad text", "a number", 1.0, 3.0,
    ("input", 0), ("clean 0", "text 1"), [[1.5, 1.0], [0.5, 3.0]],
)  # fmt: skip


def test_a_share_is_the_way_from_the_runs_outcome_to_the_sources() -> None:
    for row, outcomes in zip(SWEEP.shares, SWEEP.outcomes, strict=True):
        assert row == [(each - 1.0) / 2.0 for each in outcomes]
    assert all(math.isnan(each) for row in replace(SWEEP, source=SWEEP.run).shares for each in row)


def test_the_largest_change_is_best() -> None:
    order = SWEEP.best()
    changes = [abs(SWEEP.outcomes[row][column] - SWEEP.run) for row, column in order]
    assert changes == sorted(changes, reverse=True)
    assert len(set(order)) == 4
    assert SWEEP.best(1) == order[:1]


def test_rows_and_json_have_every_patch() -> None:
    rows, data = SWEEP.rows(), SWEEP.to_json()
    assert [row["outcome"] for row in rows] == [each for row in data["outcomes"] for each in row]
    assert [row["share"] for row in rows] == pytest.approx([each for row in data["shares"] for each in row])
    assert rows[3] == {"layer": "0", "position": "text 1", "outcome": 3.0, "share": 1.0}
    assert (data["format"], data["run"], data["source"], data["direction"]) == ("regard patch", 1.0, 3.0, "denoising")
    assert data["findings"] == SWEEP.findings()


def made(**changes: Any) -> PatchSweep:
    """Two layers and three places: from 0.25 to 0.75, one patch beyond, one in the other direction."""
    given: dict[str, Any] = {
        "what": "hidden_states", "by": "positions", "direction": "denoising", "clean": "a river bank",
        "corrupted": "a money bank", "outcome": "cosine of “bank” and the river's", "run": 0.25, "source": 0.75,
        "layers": ("input", 3), "columns": ("a 1", "money 2", "bank 3"),
        "outcomes": [[0.25, 0.625, 0.15], [0.3, 0.85, 0.75]],
        "sources": ("a", "river", "bank"),
    }  # fmt: skip
    return PatchSweep(**(given | changes))


def test_each_cell_is_a_fraction_and_says_in_words_what_the_patch_did() -> None:
    page: Any = made().page().data()
    script_json(page)
    assert "“a river bank”" in page["title"]
    assert "“a money bank”" in page["title"]
    assert page["opening"]["view"] == "panel 0"
    (grid,) = page["panels"]
    assert (grid["rows"], grid["columns"]) == (["input", "layer 3"], ["a 1", "money 2 ← river", "bank 3"])
    assert [[round(each, 9) for each in row] for row in grid["values"]] == [[0.0, 0.75, -0.2], [0.1, 1.2, 1.0]]
    assert (round(grid["largest"], 9), grid["signed"], grid["axes"]) == (1.2, True, ["layer", "position"])
    for row, outcomes in enumerate(made().outcomes):
        for column, (token, source) in enumerate((("a", "a"), ("money", "river"), ("bank", "bank"))):
            text = grid["said"][row][column]
            assert names_in(text) == [token, source]
            outcome, share, *ends = numbers_in(text)[-4:]
            shows(outcome, outcomes[column])
            shows(share, (outcomes[column] - 0.25) / 0.5)
            assert ends == ["0.25", "0.75"]
            assert ("layer 3" in text) == (row == 1)


def test_trivial_patches_are_grey_in_the_grid() -> None:
    found = made(given=((1, 2, "read"),))
    page: Any = found.page().data()
    (grid,) = page["panels"]
    assert grid["grey"] == [[1, 2]]
    assert "Grey" in grid["note"]
    (grey,) = all_axes(found.plot())[0].patches
    assert (grey.get_xy(), len(set(grey.get_facecolor()[:3]))) == ((1.5, 0.5), 1)


@pytest.mark.parametrize(("direction", "other"), [("denoising", "clean"), ("noising", "corrupted")])
def test_the_note_says_which_outcomes_are_0_and_1(direction: Any, other: str) -> None:
    note = str(made(direction=direction).page().panels[0]["note"])
    assert "0 is the outcome without a patch (0.25)" in note
    assert f"1 is the {other} text's (0.75)" in note


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {
                "what": "head_outputs",
                "by": "heads",
                "columns": ("head 0", "head 1", "head 2"),
                "at": "“bank”",
                "sources": (),
            },
            "Head outputs at “bank”, layer 3, head 1",
        ),
        ({"what": "values", "columns": ("“a”", "“bank”", "“.”")}, "Values, “bank” at layer 3, from “river”"),
        ({"what": "feed_forward"}, "Feed-forward outputs, “money” (2) at layer 3, from “river”"),
    ],
)
def test_what_was_put_in_is_named(changes: Any, says: str) -> None:
    assert describe_patch(made(layers=(2, 3), **changes), 1, 1).startswith(f"{says}: outcome 0.85, ")


def test_without_a_way_there_are_no_shares() -> None:
    found = made(source=0.25)
    assert all(math.isnan(each) for row in found.shares for each in row)
    page: Any = found.page().data()
    script_json(page)
    (grid,) = page["panels"]
    assert grid["values"] == [[None] * 3] * 2
    assert grid["largest"] == 1.0
    assert grid["said"][1][1].endswith("outcome 0.85. Both texts have 0.25.")


def test_every_fraction_is_in_its_cell_of_the_plot_layers_downwards() -> None:
    figure = made(outcomes=[[0.2501, 0.625, 0.15], [0.3, 0.85, 0.75]], outcome="a long name " * 9).plot()
    axes = all_axes(figure)[0]
    assert len(axes.texts) == 6 + 1  # with how to read it; the smallest fraction has its number as well
    assert "\n" not in figure.subfigs[0].get_suptitle()
    (image,) = axes.images
    assert np.asarray(image.get_array()) == pytest.approx(np.array(made().shares), abs=1e-3)
    assert image.get_clim() == pytest.approx((-1.2, 1.2))
    assert [each.get_text() for each in axes.get_yticklabels()] == ["input", "3"]
    assert [each.get_text() for each in axes.get_xticklabels()] == ["a 1", "money 2 ← river", "bank 3"]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_shares_stand_in_their_layers_and_columns_in_a_terminal() -> None:
    shown = str(made()).splitlines()
    assert [line.split() for line in shown if line.split()[:1] in (["input"], ["3"])] == [
        ["input", "0.00", "0.75", "−0.20"],
        ["3", "0.10", "1.20", "1.00"],
    ]
