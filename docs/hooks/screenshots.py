"""Take screenshots of pages in Chromium, where it is there."""

import importlib.util
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def opened() -> Iterator[Any]:
    """Open a browser, None where there is no Chromium."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None or importlib.util.find_spec("playwright") is None:
        yield None
        return
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


def shoot(browser: Any, address: str, picture: Path, *, dark: bool = False, view: str = "", scale: float = 1.5) -> str:
    """Save a screenshot of a page, of the view of this name. Return the text of the page."""
    size, theme = {"width": 1300, "height": 850}, "dark" if dark else "light"
    tab = browser.new_page(viewport=size, device_scale_factor=scale, color_scheme=theme, reduced_motion="reduce")
    tab.goto(address)
    tab.wait_for_timeout(2500)  # the weights are computed in the page
    if view:
        tab.get_by_text(view, exact=True).first.click()
        tab.wait_for_timeout(1500)
    tab.screenshot(path=picture)
    text = str(tab.inner_text("body"))
    tab.close()
    return text
