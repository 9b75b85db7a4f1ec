"""The page of a sweep of patches, held against the sweep."""

import math
from typing import Any

import numpy as np
import pytest

from regard.display.elements.canvas import all_axes
from regard.questions.patch.answer import PatchSweep
from regard.questions.patch.panels import said
from regard.web.html_file import script_json


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


def test_each_cell_is_a_share_and_says_in_words_what_the_patch_did() -> None:
    page: Any = made().page().data()
    script_json(page)
    assert page["title"] == ("What patches of the clean 'a river bank' do in the corrupted 'a money bank'")
    share = "Share of the way from 0.25 to 0.75 that each patch goes (cosine of “bank” and the river's)"
    assert page["panels"][0]["title"] == f"{share}: denoising, hidden_states"
    assert made().to_json()["measure"] == share[0].lower() + share[1:]
    assert page["opening"]["view"] == "panel 0"
    grid, patches = page["panels"]
    assert (grid["rows"], grid["columns"]) == (["input", "layer 3"], ["a 1", "money 2 ← river", "bank 3"])
    assert [[round(each, 9) for each in row] for row in grid["values"]] == [[0.0, 0.75, -0.2], [0.1, 1.2, 1.0]]
    assert (round(grid["largest"], 9), grid["signed"], grid["axes"]) == (1.2, True, ["layer", "token"])
    assert grid["said"] == [
        [
            "What enters layer 0 at “a” (token 1), taken from “a”: the outcome is 0.25, 0.0% of the way from "
            "0.25 to 0.75",
            "What enters layer 0 at “money” (token 2), taken from “river”: the outcome is 0.625, 75.0% of the way from "
            "0.25 to 0.75",
            "What enters layer 0 at “bank” (token 3), taken from “bank”: the outcome is 0.15, 20.0% of the way "
            "from 0.25 "
            "to 0.75 in the other direction",
        ],
        [
            "What leaves layer 3 at “a” (token 1), taken from “a”: the outcome is 0.3, 10.0% of the way from "
            "0.25 to 0.75",
            "What leaves layer 3 at “money” (token 2), taken from “river”: the outcome is 0.85, 120.0% of the way from "
            "0.25 to 0.75",
            "What leaves layer 3 at “bank” (token 3), taken from “bank”: the outcome is 0.75, 100.0% of the way from "
            "0.25 to 0.75",
        ],
    ]
    assert [row[:2] for row in patches["rows"]][:2] == [["3", "money 2 ← river"], ["3", "bank 3"]]
    assert [round(row[4], 9) for row in patches["rows"]] == [0.6, 0.5, 0.375, -0.1, 0.05, 0.0]
    assert [row[3] for row in patches["rows"]][:2] == [0.85, 0.75]


def test_what_is_so_by_construction_is_grey_in_the_grid_and_named_in_the_table() -> None:
    found = made(given=((1, 2, "read"),))
    page: Any = found.page().data()
    grid, patches = page["panels"]
    assert grid["grey"] == [[1, 2]]
    assert grid["note"].endswith("Grey goes all of the way by construction.")
    assert [row[5] for row in patches["rows"]][:3] == ["", "by construction", ""]
    (grey,) = all_axes(found.plot())[0].patches
    assert (grey.get_xy(), len(set(grey.get_facecolor()[:3]))) == ((1.5, 0.5), 1)


@pytest.mark.parametrize(
    ("direction", "read", "other", "asks"),
    [
        ("denoising", "corrupted", "clean", "Denoising asks what is enough to bring the clean text's outcome back."),
        ("noising", "clean", "corrupted", "Noising asks what the clean text's outcome cannot do without."),
    ],
)
def test_the_note_says_the_direction_and_what_0_and_1_mean(direction: Any, read: str, other: str, asks: str) -> None:
    note = str(made(direction=direction).page().panels[0]["note"])
    assert note == (
        f"Share of the way from the outcome without a patch, 0.25 (0), to the {other} text's, 0.75 (1). Each cell is "
        f"one run of the model on the {read} text that in one layer, at one place, gets hidden states of the {other} "
        f"text instead of its own. {asks} Below 0 the patch moved the outcome away."
    )


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
            "Output of layer 3, head 1, at “bank”",
        ),
        (
            {"what": "values", "columns": ("“a”", "“bank”", "“.”")},
            "Values of all heads of layer 3 at “bank”, taken from “river”",
        ),
        ({"what": "feed_forward"}, "Feed-forward output of layer 3 at “money” (token 2), taken from “river”"),
    ],
)
def test_what_was_put_in_is_named(changes: Any, says: str) -> None:
    assert said(made(layers=(2, 3), **changes), 1, 1).startswith(f"{says}: the outcome is 0.85, ")


def test_without_a_way_there_are_no_shares() -> None:
    found = made(source=0.25)
    assert all(math.isnan(each) for row in found.shares for each in row)
    page: Any = found.page().data()
    script_json(page)
    grid, patches = page["panels"]
    assert grid["values"] == [[None] * 3] * 2
    assert grid["largest"] == 1.0
    assert grid["said"][1][1].endswith("the outcome is 0.85; both texts have 0.25: there is no way between them")
    assert {row[2] for row in patches["rows"]} == {None}


def test_every_share_is_in_its_cell_of_the_picture_layers_downwards() -> None:
    axes = all_axes(made().plot())[0]
    (image,) = axes.images
    assert np.asarray(image.get_array()) == pytest.approx(np.array(made().shares))
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
    assert "Share of the way from the outcome without a patch, 0.25 (0)" in str(made())
