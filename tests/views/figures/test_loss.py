"""The curves are the log's numbers."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from regard.views.figures.loss import draw_loss, paint_loss


def line(step: int) -> dict:
    return {"step": step, "loss": 5.0 - step / 100, "validation": 4.5 if step % 50 == 0 else None}


def test_each_update_their_mean_and_what_is_held_out(tmp_path: Path) -> None:
    log = [line(step) for step in range(1, 101)]
    (axes,) = paint_loss(log).axes
    each, mean, held = axes.lines
    np.testing.assert_allclose(each.get_xydata(), [[entry["step"], entry["loss"]] for entry in log])
    np.testing.assert_allclose(mean.get_ydata(), [(a["loss"] + b["loss"]) / 2 for a, b in pairwise(log)])
    assert list(held.get_xdata()) == [50, 100]
    assert axes.get_title() == "Training loss: 4.99 at step 1, 4.00 at step 100"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "each update", "mean of 2", "held out: 4.500 at step 100",
    ]  # fmt: skip
    draw_loss(log[:1], tmp_path / "loss.png")
    assert (tmp_path / "loss.png").is_file()
