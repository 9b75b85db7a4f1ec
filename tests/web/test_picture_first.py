"""The picture comes first: little stands above it, most of it is in sight, on a laptop, a large screen and a phone.

A large screen is used: the view has its whole width, and what it shows goes across nearly half of it, or down.
"""

from pathlib import Path
from typing import Any

import pytest

from regard.models.model import Model
from regard.trace.trace import Trace
from regard.views.save_page import page_as_seen
from regard.web.assemble import Choice
from regard.web.html_file import write_page

pytestmark = pytest.mark.browser
SCREENS = {
    "laptop": (1300, 850, 260),
    "large": (1920, 1080, 260),
    "phone": (390, 844, 420),
}  # px: width, height, top
ABOVE = """() => { const box = document.querySelector("[data-main]").getBoundingClientRect();
    return [box.top, Math.min(box.bottom, innerHeight) - Math.max(box.top, 0), box.height] }"""


USED = """() => { const view = document.querySelector("[id$='-view']"), room = view.getBoundingClientRect();
    const boxes = [...view.querySelectorAll("canvas, svg, table, .tokens")].map(each => each.getBoundingClientRect());
    const [least, most] = [(side) => Math.min(...boxes.map(side)), (side) => Math.max(...boxes.map(side))];
    return [room.width / innerWidth, (most(box => box.right) - least(box => box.left)) / innerWidth,
        (Math.min(innerHeight, most(box => box.bottom)) - least(box => box.top)) / (innerHeight - room.top)]; }"""


def held(page: Any, used: float = 0) -> dict[str, Any]:
    """What is wrong on each screen, of each view; nothing where the picture comes first.

    used: how much of a large screen's width, or else of its height, what is shown takes at least.
    """
    wrong = {}
    names = page.tab.locator("[role=tab]").all_inner_texts()
    assert names
    for screen, (width, height, top) in SCREENS.items():
        page.tab.set_viewport_size({"width": width, "height": height})
        page.tab.emulate_media(color_scheme="dark" if screen == "phone" else "light")  # the dark has one tool more
        for name in names:
            page.open_view(name)
            page.tab.wait_for_selector("[data-main]")
            page.tab.wait_for_timeout(300)
            page.tab.evaluate("scrollTo(0, 0)")
            above, seen, tall = page.tab.evaluate(ABOVE)
            if above > top or seen < 0.7 * min(tall, height - top) or tall < 60:
                wrong[f"{screen}, {name}"] = (above, seen, tall)
            whole, across, down = page.tab.evaluate(USED)
            used_well = name == "Overview" or (whole >= 0.9 and max(across, down) >= used)
            if screen == "large" and not used_well:  # no narrow column on a wide screen, but for the first view
                wrong[f"{screen}, {name}, room"] = (whole, across, down)
    return wrong


def test_of_two_texts(page_of: Any, minilm: Model, bank: list[Trace], tmp_path: Path) -> None:
    references = [minilm.trace(word) for word in ("river", "money")]
    made = page_as_seen(bank, Choice(steps=True), "bank", references=references)
    write_page(made, tmp_path / "see.html")
    page = page_of(None, file=tmp_path / "see.html", width=1300)
    page.tab.set_viewport_size({"width": 1300, "height": 850})
    assert page.tab.evaluate(ABOVE)[0] <= 260  # at the first look, with the first findings
    assert held(page, used=0.45) == {}
