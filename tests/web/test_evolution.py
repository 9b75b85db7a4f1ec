"""The page of how attention formed has the loss of the run beside it."""

from pathlib import Path
from typing import Any

from regard.explain.evolution import evolution
from regard.web.evolution import evolution_page, logged_loss
from regard.web.html_file import html_parts
from tests.support.own_models import opened
from tests.support.web_pages import SHELL, Parsed

LOG: list[dict[str, int | float | None]] = [
    {"step": 1, "loss": 3.0, "validation": None},
    {"step": 2, "loss": 2.5, "validation": 2.75},
    {"step": 3, "loss": None, "validation": None},
]


def test_the_loss_is_the_last_panel() -> None:
    model = opened("gpt")
    watched = [(step, model.trace("A man is fishing")) for step in (0, 10, 20)]
    found = evolution(watched, 1)
    without, page = evolution_page(watched, found), evolution_page(watched, found, log=LOG)
    assert [panel["name"] for panel in page.panels] == [*(panel["name"] for panel in without.panels), "Loss"]
    assert [text["name"] for text in page.texts] == ["step 0", "step 20"]
    lines: Any = page.panels[-1]["series"]
    assert (lines[0]["x"], lines[0]["y"]) == ([1, 2, 3], [3.0, 2.5, None])
    assert (lines[1]["x"], lines[1]["y"]) == ([2], [2.75])
    shown = Parsed(b"".join(html_parts(page, SHELL)).decode())
    cells = "|".join(text.strip() for text in shown.text if text.strip())
    assert "line|step|loss in nats a token|training|1|3.0000|training|2|2.5000|training|3|–|held out|2|2.7500" in cells


def test_a_long_log_has_ranges_without_javascript_too(tmp_path: Path) -> None:
    from regard.web.plain_tables import plain_tables

    long = [{"step": step, "loss": float(step), "validation": None} for step in range(1, 802)]
    text = "".join(plain_tables([logged_loss(long)], str))
    assert '<th scope="col">from</th>' in text
    assert (
        '<th scope="row"><bdi>training</bdi></th><td><bdi>1</bdi></td><td><bdi>4</bdi></td><td><bdi>2.5000</bdi></td>'
        in text
    )
    assert "<td><bdi>1.0000</bdi></td><td><bdi>4.0000</bdi></td></tr>" in text
