"""A picture's patches are tokens on the page: where they lie, coloured by weight, to point at and to move through."""

from typing import Any

import pytest
import torch

import regard
from regard.questions.look.answer import looked
from tests.models.test_pictures import PROCESSOR, built, noise

pytestmark = pytest.mark.browser


def test_patches_lie_on_the_picture_and_are_coloured_by_weight(page_of: Any) -> None:
    trace = regard.load(built("vit"), processor=PROCESSOR).trace(images=noise(131, 97))
    tab = page_of(looked([trace])).tab
    tab.wait_for_selector("[data-value]")
    assert tab.locator("[data-unit]").count() == 17
    assert tab.locator("[data-unit='0']").get_attribute("aria-selected") == "true"

    picture = tab.locator("canvas").first.bounding_box()
    for token in (1, 7, 16):
        left, top, right, bottom = trace.patches.box(token)
        own = tab.locator(f"[data-unit='{token}']").bounding_box()
        scale = picture["width"] / 131
        assert own["x"] - picture["x"] == pytest.approx(left * scale, abs=1.5)
        assert own["y"] - picture["y"] == pytest.approx(top * scale, abs=1.5)
        assert own["width"] == pytest.approx((right - left) * scale, abs=1.5)
        assert own["height"] == pytest.approx((bottom - top) * scale, abs=1.5)

    def alphas() -> list[float]:
        read = "each => +(getComputedStyle(each).backgroundColor.match(/[\\d.]+(?=\\))/)[0])"
        return [tab.locator(f"[data-unit='{n}']").evaluate(read) for n in range(1, 17)]

    weights = trace.attention[1].dense().mean(0)
    heat = weights[0, 1:]
    assert torch.tensor(alphas()) / 0.75 == pytest.approx((heat / heat.max()).numpy(), abs=5e-3)

    # Another patch is pointed at: its own row, by its name; then by the keyboard one row of patches down.
    tab.locator("[data-unit='7']").hover()
    tab.locator("caption", has_text="What “1,2” looks at").wait_for()
    row = weights[7, 1:]
    assert torch.tensor(alphas()) / 0.75 == pytest.approx((row / row.max()).numpy(), abs=5e-3)
    tab.locator("[data-unit='7']").click()
    tab.keyboard.press("ArrowDown")
    assert tab.locator("[data-unit='11']").get_attribute("aria-selected") == "true"
