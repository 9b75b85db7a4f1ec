"""A corpus in the served page: a map of occurrences pointed at, zoomed, traced from by a click, and gone back to."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import numpy as np
import pytest

from regard.corpus.questions.senses.answer import Senses
from regard.corpus.store import Store
from regard.display.sentences import number_text
from tests.support.served import served
from tests.support.stores import Document, write_store
from tests.web.conftest import AXE, Opened
from tests.web.tables import rows_of

pytestmark = pytest.mark.browser
MANY = 250


@pytest.fixture(scope="module")
def found(bank_folder: Path, minilm: Any) -> Senses:
    """What the server answers."""
    with Store(bank_folder) as store:
        vars(store)["model"] = minilm
        return store.senses("bank")


@pytest.fixture(scope="module")
def server(bank_folder: Path) -> Iterator[str]:
    """The link of a server with a store of the default model."""
    with served("--store", str(bank_folder)) as (_, port, token):
        yield f"http://127.0.0.1:{port}/?token={token}"


@pytest.fixture(scope="module")
def other_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The link of a server with a store of another model, in which a word occurs often."""
    documents = [Document(f"d{n}", f"the bank {n}") for n in range(MANY)]
    vectors = np.random.default_rng(0).standard_normal((3 * MANY, 1, 384)).astype(np.float16)
    folder = write_store(tmp_path_factory.mktemp("stores") / "many", [(documents, vectors)])
    with served("--store", str(folder)) as (_, port, token):
        yield f"http://127.0.0.1:{port}/?token={token}"


@pytest.fixture
def ask(visit: Any) -> Callable[..., Opened]:
    """Open a link and ask for a word: ask(link, button, width=)."""

    def go(link: str, button: str = "its senses", width: int = 1000) -> Opened:
        page: Opened = visit(link, width, 1100, refusal="422")
        page.tab.fill("form[aria-label=Corpus] input", "bank")
        page.tab.click(f"button:has-text('{button}')")
        page.tab.wait_for_selector(".cloud[data-ready=true]" if "senses" in button else "tbody tr", timeout=120_000)
        return page

    return go


def go(page: Opened, *keys: str) -> list[float]:
    """Press keys in the map; gives where the point that is looked at lies on the canvas."""
    page.tab.focus(".cloud")
    for key in keys:
        page.tab.keyboard.press(key)
    page.tab.wait_for_timeout(100)
    return [float(each) for each in page.tab.get_attribute(".cloud", "data-place").split()]


def said(page: Opened) -> str:
    """What the page says of the point, once it is there."""
    page.tab.wait_for_selector("[data-says] mark")
    return " ".join(page.tab.inner_text("[data-says]").split())


def mouse(page: Opened, place: list[float]) -> tuple[float, float]:
    box = page.tab.locator(".cloud canvas").bounding_box()
    return box["x"] + place[0], box["y"] + place[1]


def traced(page: Opened) -> dict[str, Any]:
    """Wait for the trace of a place's text; gives what the address holds."""
    page.tab.wait_for_selector("[data-back]", timeout=60_000)
    page.tab.wait_for_timeout(300)
    return dict(json.loads(unquote(page.tab.url.partition("#")[2])))


def test_keys_and_the_mouse_name_the_same_points_with_the_librarys_words(server: str, ask: Any, found: Senses) -> None:
    page = ask(server)
    rows, points = found.rows(), found.points[found.order()]
    labels = found.clusters.labels[found.order()].tolist()
    axes = [f"axis {n + 1} ({share:.0%} of the variance)" for n, share in enumerate(found.axes)]
    places = {}
    second = labels.index(1)
    for keys, n in ((["Home"], 0), (["ArrowRight"], 1), (["PageDown"], second), (["End"], 15), (["PageUp"], 0)):
        places[n] = go(page, *keys)
        assert page.tab.get_attribute(".cloud", "data-at") == str(n)
        row, (x, y) = rows[n], points[n]
        there = f"{row['left']}{row['form']}{row['right']} {row['document']} (sense {row['sense']}): "
        assert said(page) == f"{there}{axes[0]} {number_text(x, 3)}, {axes[1]} {number_text(y, 3)}"
    drawn = np.array([places[n] for n in places]) * [1, -1]  # one scale for both axes
    expected = points[list(places)]
    scale = np.ptp(drawn[:, 0]) / np.ptp(expected[:, 0])
    np.testing.assert_allclose(drawn - drawn[0], scale * (expected - expected[0]), atol=0.05)
    for n, place in places.items():
        page.tab.mouse.move(*mouse(page, [300, 20]))
        page.tab.mouse.move(*mouse(page, place))
        page.tab.wait_for_selector(f".cloud[data-at='{n}']")
        assert str(rows[n]["right"])[:20] in said(page)


def test_marks_have_their_senses_colours_where_their_points_lie(server: str, ask: Any, found: Senses) -> None:
    page = ask(server)
    colours = page.tab.eval_on_selector_all(".legend path", "all => all.map(each => each.getAttribute('fill'))")
    assert len(set(colours)) == len(found.senses) == 2
    labels = found.clusters.labels[found.order()]
    keys = ["Home"] + 15 * ["ArrowRight"]
    seen = []
    for n, key in enumerate(keys):
        x, y = go(page, key)
        pixel = page.tab.locator(".cloud canvas").evaluate(
            "(c, [x, y]) => [...c.getContext('2d').getImageData(Math.floor(x), Math.floor(y), 1, 1).data]", [x, y]
        )
        seen.append("#{:02x}{:02x}{:02x}".format(*pixel) == colours[labels[n]])
    assert sum(seen) >= 14  # one mark may lie on another


def test_zooming_and_moving_are_what_they_say(server: str, ask: Any) -> None:
    page = ask(server)
    first, second = np.array(go(page, "Home")), np.array(go(page, "ArrowRight"))
    page.tab.click("[aria-label='zoom in']")
    after = np.array(go(page))
    np.testing.assert_allclose(after, second, atol=0.6)  # around the point that is looked at
    again = np.array(go(page, "Home"))
    np.testing.assert_allclose(
        np.linalg.norm(again - np.array(go(page, "ArrowRight"))), 2 * np.linalg.norm(first - second), rtol=1e-3
    )
    place = np.array(go(page))
    moved = np.array(go(page, "Shift+ArrowLeft"))
    assert moved[1] == pytest.approx(place[1])
    assert moved[0] > place[0] + 50
    x, y = mouse(page, [400, 300])
    page.tab.mouse.move(x, y)
    page.tab.mouse.wheel(0, -240)
    page.tab.wait_for_timeout(200)
    assert np.linalg.norm(np.array(go(page)) - moved) > 1
    page.tab.click("button:has-text('the whole')")
    np.testing.assert_allclose(go(page), second, atol=0.6)


def test_a_click_traces_the_text_and_every_way_back_leads_to_the_point(server: str, ask: Any, found: Senses) -> None:
    page = ask(server)
    row = found.rows()[3]
    place = go(page, "Home", "ArrowRight", "ArrowRight", "ArrowRight", "+")
    page.tab.wait_for_timeout(500)
    page.tab.mouse.click(*mouse(page, place))
    held = traced(page)
    assert held["texts"] == [f"{row['left']}{row['form']}{row['right']}"]
    assert held["from"]["document"] == row["document"]
    assert held["from"]["same"] is True
    assert page.tab.input_value("textarea") == held["texts"][0]
    chosen = page.tab.locator(f"[data-sentence] [data-token='{held['token']}']")
    assert chosen.inner_text().strip() == "bank"
    assert page.tab.evaluate("document.activeElement.textContent") == "back to where “bank” stands"

    def there() -> None:
        page.tab.wait_for_selector(".cloud[data-ready=true]", timeout=60_000)
        page.tab.wait_for_selector(".cloud[data-at='3']")
        page.tab.wait_for_timeout(100)
        now = [float(each) for each in page.tab.get_attribute(".cloud", "data-place").split()]
        np.testing.assert_allclose(now, place, atol=0.6)
        assert page.tab.locator("[data-back]").count() == 0

    page.tab.go_back()
    there()
    page.tab.go_forward()
    assert traced(page)["texts"] == held["texts"]
    page.tab.keyboard.press("Tab")
    page.tab.click("[data-back]")
    there()
    page.tab.focus(".cloud")
    page.tab.keyboard.press("Enter")
    link = (traced(page), page.tab.url)[1]
    page.tab.goto("about:blank")
    page.tab.goto(link)  # a link that somebody kept: there is nothing behind it in the browser
    traced(page)
    page.tab.click("[data-back]")
    there()


def test_a_line_and_an_example_are_traced_too(server: str, ask: Any, bank_folder: Path) -> None:
    page = ask(server, "where it occurs")
    with Store(bank_folder) as store:
        line = store.find("bank").lines[4]
    button = page.tab.locator("tbody tr").nth(4).locator("button")
    assert button.locator("mark").inner_text() == "bank"
    button.click()
    assert traced(page)["texts"] == [f"{line.left}{line.form}{line.right}"]
    page.tab.click("[data-back]")
    page.tab.wait_for_selector(".topbar [title*='in the corpus']")
    page.tab.click("button:has-text('its senses')")
    page.tab.wait_for_selector(".cloud[data-ready=true]", timeout=120_000)
    page.open_view("Examples")
    row = page.tab.locator("tbody tr").nth(2)
    sentence = row.locator("td").first.inner_text()
    row.locator("button").click()
    assert traced(page)["texts"] == [sentence]


def test_the_table_of_points_comes_page_by_page(other_server: str, ask: Any) -> None:
    page = ask(other_server)
    page.tab.click("summary:has-text('The points as a table')")
    title, shown = "Occurrences of “bank”, layer 5, rows ", 0
    for button, rows in ((None, "1 to 100"), ("last", "201 to 250"), ("previous", "101 to 200"), ("first", "1 to 100")):
        if button:
            page.tab.click(f".pages button:has-text('{button}')")
        page.tab.wait_for_selector(f"[data-range]:has-text('rows {rows} of {MANY}')")
        cells = rows_of(page.tab, f"{title}{rows} of {MANY}")
        first, _, last = rows.partition(" to ")
        assert len(cells) == int(last) - int(first) + 1
        assert all(row[2].startswith("the bank ") and row[0] == f"d{row[2].split()[-1]}" for row in cells)
        shown += len(cells)
    assert shown == 350
    page.tab.fill(".pages input", "150")
    page.tab.keyboard.press("Enter")
    page.tab.wait_for_selector("[data-range]:has-text('rows 150 to 249')")


def test_without_the_model_of_the_store_a_line_says_so(other_server: str, ask: Any) -> None:
    page = ask(other_server)
    go(page, "Home", "Enter")
    assert "embedded with made, this server was started with no model" in page.tab.inner_text(".trouble")
    assert page.tab.locator(".cloud").count() == 1


@pytest.mark.parametrize("width", [390, 1000])
def test_everyone_can_use_it(server: str, ask: Any, width: int) -> None:
    page = ask(server, width=width)
    page.tab.evaluate(AXE.read_text())
    go(page, "Home")
    said(page)
    page.tab.click("summary:has-text('The points as a table')")
    page.tab.wait_for_selector("tbody tr")
    page.suits_everyone(width)
    page.open_view("Examples")
    assert page.violations() == []
    page.tab.locator("tbody button").first.click()
    traced(page)
    page.suits_everyone(width)
    page.tab.click("[data-back]")
    page.tab.wait_for_selector("[data-back]", state="detached")
    page.tab.click("button:has-text('where it occurs')")
    page.tab.wait_for_selector(".topbar [title*='in the corpus']")
    page.suits_everyone(width)
