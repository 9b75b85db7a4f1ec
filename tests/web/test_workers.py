"""Where a host allows no workers, the page computes in its own thread, and its numbers are the same."""

from collections.abc import Iterator
from typing import Any

import pytest

import regard

pytestmark = pytest.mark.browser

THROWS = "window.Worker = class { constructor() { throw new Error('no workers here'); } }"
FAILS = """
window.Worker = class {
    constructor() { window.started = (window.started ?? 0) + 1; }
    postMessage() { setTimeout(() => this.onerror?.(new ErrorEvent("error", { cancelable: true })), 20); }
    addEventListener() {}
    terminate() {}
}
"""


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    context = chromium.new_context(offline=True)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert errors == []


@pytest.mark.parametrize("script", [THROWS, FAILS])
def test_without_workers_the_page_computes_itself(script: str, tab: Any, bank: Any, tmp_path: Any) -> None:
    regard.save_page(bank[0], tmp_path / "page.html")
    tab.add_init_script(script)
    tab.goto((tmp_path / "page.html").as_uri())
    tab.click("role=tab[name=Numbers]")
    token = bank[0].word("bank")[0].tokens[0]
    for layer, head in ((2, 7), (5, 0)):
        tab.select_option("[data-choose=layer]", str(layer))
        tab.select_option("[data-choose=head]", str(head))
        tab.hover(f"[data-unit='{token}']")
        weights = bank[0].attention[layer][head, token]
        cell = f"[data-value='{int(weights.argmax())}']"
        tab.locator("caption", has_text="What “bank” looks at").wait_for()
        tab.wait_for_timeout(300)  # until the numbers are those of this head
        assert float(tab.inner_text(cell)) == pytest.approx(float(weights.max()), abs=2e-4)
        tab.mouse.move(0, 0)
    if script == FAILS:
        assert tab.evaluate("window.started") >= 2
