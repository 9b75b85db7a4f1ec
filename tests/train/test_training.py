"""Sentences about a run are its log's numbers: nothing falls that did not fall."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.display.answer import panel_data
from regard.display.terminal_parts import plain_lines_of_parts
from regard.train.training import DRAWN, MOST, POINTS, Training, evaluations, training_of
from tests.said.reading import numbers_in, plain_and_few


def log(losses: list[float], held: dict[int, float] | None = None) -> list[dict[str, int | float | None]]:
    return [{"step": n, "loss": loss, "validation": (held or {}).get(n)} for n, loss in enumerate(losses, 1)]


def said(losses: list[float], held: dict[int, float] | None = None, vocabulary: int = 65) -> list[str]:
    found = Training(log(losses, held), vocabulary)
    plain_and_few(found.findings())
    return found.findings()


def numbers_of(sentence: str) -> list[str]:
    return [number.rstrip(",") for number in numbers_in(sentence)]


def test_the_numbers_are_the_logs() -> None:
    loss, chance, held = said([4.0, 3.0, 2.0, 1.0], {2: 3.5, 3: 2.5, 4: 2.0})
    assert "fell" in loss
    assert numbers_in(loss) == ["1", "4", "4.00", "1.00"]
    assert numbers_in(chance) == ["65", f"{math.log(65):.2f}"]
    assert "still falling" in held
    assert numbers_in(held) == ["2.00", "4"]


def test_what_did_not_fall() -> None:
    loss, chance = said([4.2, 4.5])
    assert "rose" in loss
    assert "no better" in chance
    assert "stayed" in said([4.0, 4.0])[0]


def test_a_gap_and_texts_that_are_learned_by_heart() -> None:
    assert numbers_of(said([4.0, 2.0, 1.0], {2: 2.5, 3: 2.5})[2]) == ["2.50", "3", "1.50"]
    held = said([4.0, 2.0, 1.0, 0.5], {1: 4.0, 2: 3.0, 4: 3.4})[2]
    assert "overfits" in held
    assert numbers_in(held) == ["3.00", "2", "3.40", "4"]
    assert "overfits" not in said([4.0, 2.0, 3.0, 3.5], {1: 4.0, 2: 3.0, 4: 3.4})[2]


def test_one_update_and_none() -> None:
    assert said([]) == said([math.nan]) == []
    loss, held = said([2.0], {1: 2.0}, 1)
    assert numbers_in(loss) == ["2.00"]
    assert numbers_in(held) == ["2.00", "1"]


def test_means_at_the_ends_of_long_runs() -> None:
    assert numbers_of(said([4.0, 2.0] * 50)[0]) == ["1", "100", "2", "3.00"]


def test_evaluations() -> None:
    found = evaluations(log([4.0, 2.0, 1.0], {2: 2.5, 3: 2.0}))
    assert [(each.step, each.loss, each.validation) for each in found] == [(2, 3.0, 2.5), (3, 1.0, 2.0)]


@pytest.mark.parametrize("vocabulary", [1, 2, 50_000])
def test_any_vocabulary(vocabulary: int) -> None:
    assert Training(log([1.0, 0.5]), vocabulary).findings()


def printed(found: Training, width: int) -> list[str]:
    return plain_lines_of_parts(found.shown(width), width)


def test_a_run_fits_one_screen() -> None:
    held = {n: 4.0 - n / 50 for n in range(5, 101, 5)}
    found = Training(log([4.0 - n / 40 for n in range(100)], held), 65)
    for width in (60, 80, 140):
        lines = printed(found, width)
        assert max(map(len, lines)) <= width
        assert len(lines) <= 30
        out = " ".join(" ".join(lines).split())
        assert "8 of 20 (all in log.jsonl)" in out
        rows = [line.split() for line in lines if "█" in line]
        assert (len(rows), rows[0][0], rows[-1][0]) == (MOST, "5", "100")
    (whole,) = [panel for panel in found.panels() if panel.name == "Evaluations"]
    assert [row[0] for row in whole.rows] == list(held)  # type: ignore[attr-defined]


def test_without_evaluations_there_is_a_line_and_no_table() -> None:
    lines = printed(Training(log([2.0, 1.0]), 65), 80)
    assert not any("held out" in line for line in lines)
    (line,) = [line.split() for line in lines if "training" in line]
    assert (line[0], line[-2:]) == ("training", ["2.00", "1.00"])
    assert not any("training" in line for line in printed(Training(log([2.0]), 65), 80))  # it would be a point


def test_its_rows_are_its_log() -> None:
    found = Training(log([2.0, 1.0], {2: 1.5}), 65)
    assert found.rows() == [
        {"step": 1, "loss": 2.0, "held_out": None}, {"step": 2, "loss": 1.0, "held_out": 1.5},
    ]  # fmt: skip
    assert found.to_json()["rows"] == found.rows()


def lines_of_loss(count: int, first: int = 1) -> tuple[list[int], list[float], Any]:
    steps = list(range(first, first + count))
    losses = [5 / (1 + step / 100) + math.sin(step) for step in steps]
    own = [{"step": n, "loss": loss, "validation": None} for n, loss in zip(steps, losses, strict=True)]
    return steps, losses, panel_data(Training(own).loss())


def test_a_short_run_has_every_update() -> None:
    steps, losses, panel = lines_of_loss(POINTS)
    (line,) = panel["series"]
    assert (line["x"], line["y"], line["since"], line["low"]) == (steps, losses, None, None)
    assert panel["note"] == "Each point is one update."


@pytest.mark.parametrize(("count", "size"), [(POINTS + 1, 2), (2 * POINTS, 2), (2 * POINTS + 1, 4), (12_345, 32)])
def test_a_long_one_has_means_and_their_ranges(count: int, size: int) -> None:
    steps, losses, panel = lines_of_loss(count, first=7)
    (line,) = panel["series"]
    assert POINTS / 2 <= len(line["x"]) <= POINTS
    assert f"Each point is the mean of {size} updates" in panel["note"]
    for n in range(len(line["x"])):
        own = losses[n * size : (n + 1) * size]
        assert (line["since"][n], line["x"][n]) == (steps[n * size], steps[n * size + len(own) - 1])
        assert line["y"][n] == pytest.approx(sum(own) / len(own), rel=1e-12)
        assert (line["low"][n], line["high"][n]) == (min(own), max(own))


def test_points_stay_where_they_are_while_a_run_goes_on() -> None:
    before, after = lines_of_loss(1000)[2]["series"][0], lines_of_loss(1100)[2]["series"][0]
    assert after["y"][: len(before["y"]) - 1] == before["y"][:-1]


def test_what_is_held_out_is_a_line_of_its_own() -> None:
    panel: Any = panel_data(Training(log([3.0, math.nan, 2.0], {2: 2.5, 3: math.inf}), smoothing=0.1).loss())
    training, held = panel["series"]
    assert training["y"] == [3.0, None, 2.0]
    assert (held["name"], held["x"], held["y"]) == ("held out", [2, 3], [2.5, None])
    assert "labels smoothed by 0.1" in panel["note"]
    assert Training([]).loss().series[0].x == []


def test_a_picture_has_the_loss_its_range_and_what_is_held_out(tmp_path: Path) -> None:
    losses = [5.0 - step / 100 + 0.1 * (step % 2) for step in range(1, 4 * DRAWN + 1)]
    own = log(losses, {200: 4.5, 400: 4.25})
    (axes,) = Training(own).plot().axes
    means, held = axes.lines
    np.testing.assert_allclose(means.get_ydata(), np.reshape(losses, (DRAWN, 4)).mean(1))
    np.testing.assert_array_equal(held.get_xydata(), [[200, 4.5], [400, 4.25]])
    assert len(axes.collections) == 1  # the band
    title = Training(own).title()
    assert title == "Training loss: 5.09 at step 1, 1.00 at step 400, held out 4.25 at step 400"
    assert title in " ".join(axes.figure.get_suptitle().split())
    assert "Each point is the mean of 4 updates" in " ".join(axes.texts[-1].get_text().split())
    assert Training(own[:1]).draw(tmp_path / "loss.png") == []
    assert (tmp_path / "loss.png").is_file()
    (line,) = Training(own[:3]).plot().axes[0].lines
    np.testing.assert_allclose(line.get_xydata(), [[n, losses[n - 1]] for n in (1, 2, 3)])
    assert Training([]).title() == "Training loss: no update yet"


def test_what_a_folder_has(tmp_path: Path) -> None:
    assert training_of(tmp_path) is None
