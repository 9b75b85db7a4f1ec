"""The panels of a painted line: counts of every trial, pictures and heat with a slider over the steps."""

from dataclasses import replace

import pytest
import torch

from regard.display.page import panel_data
from regard.display.panels import Heat, Table
from regard.questions.paint import answer
from regard.questions.paint.answer import painting
from tests.questions.paint.test_answer import SCENE, small
from tests.train.test_painter_measures import knowing


def test_tables_count_what_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer, "paint", knowing(through_edges=True, pointing=True))
    trials, words = painting(small(), SCENE, samples=3).panels()[-2:]
    assert isinstance(trials, Table)
    assert isinstance(words, Table)
    assert [column.name for column in trials.columns] == ["painted", "top left", "bottom right"]
    assert trials.rows[:2] == [
        ["as written", "seven 3", "two 3"],
        ["keys of “seven” and “two” exchanged", "two 3", "seven 3"],
    ]
    assert [row[1] for row in words.rows] == SCENE.words
    assert words.rows[2][2] == pytest.approx(4.04 / 4.16)


def test_heat_is_of_the_first_picture_and_ends_in_its_mean() -> None:
    found = painting(small(patch=2), SCENE, samples=2)
    heats = {panel.name: panel for panel in found.panels() if isinstance(panel, Heat)}
    seven = heats["Heat of 2 seven"]
    assert (len(seven.rows), len(seven.columns)) == (8, 8)
    assert seven.over is not None
    assert (seven.over.titles[3], seven.over.titles[-1]) == ("seven: step 3", "seven: mean of all steps")
    weights = found.written.weights[:, :, 0].mean((1, 2))
    assert seven.largest == pytest.approx(float(weights.max()))
    assert {seven.under, heats["Heat of 7 two, layer 1"].under, heats["As written"].under} == {"As written"}
    assert panel_data(seven)["largest"] == seven.largest
    assert panel_data(heats["As written"])["largest"] == 0  # the picture itself, without heat
    assert panel_data(replace(seven, under=""))["under"] == ""
    assert len(seven.over.values) == 21
    assert seven.over.values[-1] == seven.values
    first = found.written.weights[0, :, 0, :, :, 2].mean((0, 1)).view(8, 8)
    torch.testing.assert_close(torch.tensor(seven.over.values[0]), first)
    steps = torch.tensor(seven.over.values[:-1])
    torch.testing.assert_close(steps.mean(0), torch.tensor(seven.values))
    layer = found.written.weights[3, 1, 0, :, :, 7].mean(0).view(8, 8)
    torch.testing.assert_close(torch.tensor(heats["Heat of 7 two, layer 1"].over.values[3]), layer)
    ink = torch.tensor(heats["As written"].values)
    torch.testing.assert_close(ink, ((found.written.pictures[0] + 1) / 2).clamp(0, 1), atol=1e-4, rtol=0)
