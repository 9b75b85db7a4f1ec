"""A real browser for the tests of pages: Debian's Chromium, driven by playwright's client, one a process."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

BUILT = Path(__file__).parents[2] / "src" / "regard" / "web" / "built" / "page.js"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser; skipped, with the reason, where it or the built page is absent."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if not BUILT.exists():
        pytest.skip("the page is not built: make page")
    if program is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    sync = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with sync.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()
