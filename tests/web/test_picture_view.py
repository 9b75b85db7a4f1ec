"""A picture's patches are tokens on the page: where they lie, coloured by weight, to point at and to move through."""

from typing import Any

import pytest
import torch

import regard
from regard.vision.answer import looked
from tests.vision.test_pictures import PROCESSOR, built, noise

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

    def parts(row: torch.Tensor) -> Any:
        """Of four times the mean, for the largest is less than that: it is almost even."""
        assert row.max() < 2 * row.mean()
        return (row / (4 * row.mean())).numpy()

    assert torch.tensor(alphas()) / 0.75 == pytest.approx(parts(weights[0, 1:]), abs=5e-3)
    times = float(weights[0, 1:].max() / weights[0, 1:].mean())
    assert f"almost even: at most {times:.2f} times the mean" in tab.inner_text("[aria-live] .bar")

    # Another patch is pointed at: its own row, by its name; then by the keyboard one row of patches down.
    tab.locator("[data-unit='7']").hover()
    tab.locator("caption", has_text="What “1,2” looks at").wait_for()
    assert torch.tensor(alphas()) / 0.75 == pytest.approx(parts(weights[7, 1:]), abs=5e-3)
    tab.locator("[data-unit='7']").click()
    tab.keyboard.press("ArrowDown")
    assert tab.locator("[data-unit='11']").get_attribute("aria-selected") == "true"


@pytest.mark.parametrize("size", [(224, 224), (640, 427), (90, 300)], ids=str)
def test_the_picture_its_heat_and_the_numbers_are_in_sight_at_opening(page_of: Any, size: tuple[int, int]) -> None:
    trace = regard.load(built("vit"), processor=PROCESSOR).trace(images=noise(*size))
    tab = page_of(looked([trace])).tab
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.wait_for_selector("[data-value]")
    picture = tab.locator("canvas").first.bounding_box()
    assert picture["width"] / picture["height"] == pytest.approx(size[0] / size[1], rel=0.01)
    assert picture["height"] == pytest.approx(480, abs=1)
    for part in ("h1", ".picture", "[data-unit='16']", ".bar", "[data-value]"):
        box = tab.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 800
    assert tab.locator(".bar").first.bounding_box()["x"] > picture["x"] + picture["width"]  # beside it
    tab.set_viewport_size({"width": 390, "height": 844})
    for _ in range(100):  # until it is laid out anew; the page's policy forbids the browser to wait for a function
        small = tab.locator("canvas").first.bounding_box()
        if small["width"] <= 390:
            break
        tab.wait_for_timeout(50)
    assert small["width"] <= 390
    assert small["width"] / small["height"] == pytest.approx(size[0] / size[1], rel=0.01)
