"""A picture dropped on the served page is shown under its heat; what is no picture is refused there in a line."""

import base64
from pathlib import Path
from typing import Any

import pytest

from tests.vision.test_pictured_text import save_looker
from tests.vision.test_pictures import PROCESSOR, built
from tests.web.conftest import AXE, Opened

pytestmark = pytest.mark.browser
DROP = """([data, name]) => {
    const dropped = new DataTransfer(), bytes = Uint8Array.from(atob(data), each => each.charCodeAt(0));
    dropped.items.add(new File([bytes], name));
    for (const kind of ["dragover", "drop"])
        document.querySelector(".live").dispatchEvent(
            new DragEvent(kind, {dataTransfer: dropped, bubbles: true, cancelable: true}));
}"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A model that reads only pictures, and one that reads them in a text, beside whose files lies a picture."""
    alone, both = made = [tmp_path_factory.mktemp(name) for name in ("eye", "looker")]
    built("dinov2").save_pretrained(alone)
    PROCESSOR.save_pretrained(alone)
    save_looker(both)
    return made


@pytest.fixture
def page(serve: Any, visit: Any, folders: list[Path]) -> Opened:
    """Open the page of a server with both models."""
    _, port, token = serve("--model", str(folders[0]), "--model", str(folders[1]))
    page: Opened = visit(f"http://127.0.0.1:{port}/?token={token}")
    if AXE.exists():
        page.tab.evaluate(AXE.read_text())
    page.file = folders[1] / "cat.png"
    page.tab.wait_for_selector(".drop")
    return page


def drop(page: Opened, data: bytes, name: str) -> None:
    """Drop a file on the page, beside the field that says where."""
    page.tab.evaluate(DROP, [base64.b64encode(data).decode(), name])


def test_a_dropped_picture_is_shown_under_its_heat(page: Any) -> None:
    assert page.tab.locator("textarea").count() == 0
    assert "reads only pictures" in page.tab.inner_text("form")
    if AXE.exists():
        assert page.violations() == []
    drop(page, page.file.read_bytes(), "a cat.png")
    page.tab.wait_for_selector(".topbar [title*='Attention to a cat.png']", timeout=60_000)
    assert page.tab.locator(".picture .patch").count() == 16
    assert page.tab.locator("text=cut this head").count() == 0  # nothing is done to such a pass
    assert "base64" not in page.tab.url
    page.tab.reload()
    page.tab.wait_for_selector(".topbar [title*='Attention to a cat.png']", timeout=60_000)
    drop(page, b"no picture", "notes.png")
    page.tab.wait_for_selector("[role=alert]:has-text(\"image 'notes.png' cannot be read\")")
    drop(page, bytes(5_000_001), "vast.png")
    page.tab.wait_for_selector("[role=alert]:has-text('vast.png has 5,000,001 bytes: 5,000,000 are the most.')")


def test_a_text_stands_beside_a_picture(page: Any) -> None:
    page.tab.select_option("form select", index=1)
    page.tab.set_input_files(".drop input", page.file)
    page.tab.wait_for_selector("textarea[placeholder='Ask about the picture']")
    page.tab.click("text=Trace")
    page.tab.wait_for_selector("[role=alert]:has-text('Type one question')")
    page.tab.fill("textarea", "what is on the mat ?")
    page.tab.keyboard.press("Control+Enter")
    page.tab.wait_for_selector(".topbar [title*='Attention to cat.png']", timeout=60_000)
    assert "most to a patch" in page.tab.inner_text(".findings")
    page.tab.click("[data-unit='0']")  # the first patch, where the picture stands before the text
    assert page.tab.input_value("textarea") == "what is on the mat ?"
    if AXE.exists():
        assert page.violations() == []
