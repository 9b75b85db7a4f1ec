"""The widget where it lives: JupyterLab and marimo, driven in a real browser; and a notebook that nbconvert ran."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.questions.patch.test_answer import made as sweep
from tests.support import RIVER
from tests.web.notebooks import environment, jupyterlab, marimo, notebook

pytestmark = [pytest.mark.browser, pytest.mark.long]

SECONDS = 300_000  # milliseconds that a kernel may take to load torch and the model
SHOW = f"import regard\ntrace = regard.load().trace({RIVER!r})\nw = regard.show(trace, word='bank')\nw"
NAMES = "(page) => [...page.querySelectorAll('[id], [name]')].flatMap((each) => [each.id, each.name]).filter(Boolean)"
PLOT = "trace.plot('bank')"
TITLE = "# A title\n\n| a | b |\n|---|---|\n| 1 | 2 |"
CELLS = [
    TITLE,
    SHOW,
    "print(w.text, w.layer, w.head, w.token)",
    "w.layer, w.head, w.token, w.side = 3, 5, 4, 'receives'",
]
CELLS += [
    "try:\n    w.layer = 6\nexcept regard.RegardError as error:\n    print(error)",
    "regard.show(trace, word='bank', layers=[1])",
]

MARIMO = f"""
import marimo
app = marimo.App()

@app.cell
def _():
    import marimo as mo
    import regard
    return mo, regard

@app.cell
def _(mo, regard):
    view = mo.ui.anywidget(regard.show(regard.load().trace({RIVER!r})))
    view
    return (view,)

@app.cell
def _(mo, view):
    mo.md(f"chosen: token {{view.token}}, layer {{view.layer}}.")

@app.cell
def _(mo, view):
    def change(_):
        view.widget.layer, view.widget.head, view.widget.token = 3, 5, 4
    mo.ui.button(label="change", on_change=change)

@app.cell
def _(mo):
    mo.md("# A title")
"""


def needs(package: str) -> None:
    """Skip where a host is not installed."""
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed: pip install -e '.[notebook-tests]'")


@pytest.fixture
def tab(chromium: Any) -> Iterator[Any]:
    """A tab that can reach this machine alone, and fails its test where the page raised an error."""
    errors: list[str] = []
    context = chromium.new_context(viewport={"width": 1100, "height": 1000})
    context.route(lambda address: not re.match(r"(https?|wss?)://(127\.0\.0\.1|localhost)[:/]|data:|blob:", address),
                  lambda route: route.abort())  # fmt: skip
    opened = context.new_page()
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert errors == []


def look(tab: Any) -> dict[str, Any]:
    """How the host's own page looks: what the widget's styles must not change."""
    return tab.evaluate(
        """() => Object.fromEntries(["html", "body", "h1", "table", "button"].map((name) => {
            const each = [...document.querySelectorAll(name)].find((one) => !one.closest(".regard"));
            const style = each && getComputedStyle(each);
            return [name, style && [style.backgroundColor, style.color, style.font, style.margin, style.padding]];
        }))"""
    )


class Lab:
    """A notebook in JupyterLab: its cells run one by one, as a hand would."""

    def __init__(self, tab: Any, address: str) -> None:
        self.tab = tab
        tab.goto(address)
        self.cell(0).wait_for(timeout=60_000)

    def cell(self, number: int) -> Any:
        return self.tab.locator(".jp-Notebook .jp-Cell").nth(number)

    def run(self, number: int) -> None:
        """Press until the cell is asked to run: what is pressed while the kernel connects can be lost."""
        prompt = self.cell(number).locator(".jp-InputArea-prompt").first
        before = prompt.inner_text()
        for _ in range(12):
            self.cell(number).locator(".cm-content").click()
            self.tab.keyboard.press("Shift+Enter")
            for _ in range(50):
                if prompt.inner_text() != before:
                    return
                self.tab.wait_for_timeout(100)
        raise AssertionError(f"cell {number} was not run: its prompt is still {before!r}")

    def said(self, number: int) -> str:
        """What a cell printed, once it has."""
        self.run(number)
        output = self.cell(number).locator(".jp-OutputArea-output").first
        output.wait_for(timeout=30_000)
        return str(output.inner_text()).strip()


def test_jupyterlab_shows_the_page_and_keeps_traits_and_page_equal(tab: Any, tmp_path: Path, bank: Any) -> None:
    needs("jupyterlab")
    (tmp_path / "n.ipynb").write_text(notebook(CELLS), encoding="utf-8")
    with jupyterlab(tmp_path) as address:
        lab = Lab(tab, address.format("n.ipynb"))
        lab.cell(0).locator("table").wait_for()
        before = look(tab)
        lab.run(1)
        tab.click(".regard [role=tab]:has-text('Numbers')", timeout=SECONDS)
        tab.wait_for_selector(".regard [data-unit]", timeout=SECONDS)
        assert look(tab) == before
        page, token = lab.cell(1), bank[0].word("fishing")[0].tokens[0]

        # By hand to the kernel: what is pointed at is shown, what is chosen is a trait.
        page.locator(f"[data-unit='{token}']").hover()
        assert page.locator("caption", has_text="What “fishing” looks at").count() == 1
        page.locator(f"[data-unit='{token}']").click()
        page.locator("[data-choose=layer]").select_option("2")
        assert lab.said(2) == f"text 1 2 4 {token}"

        # Keys move on the page and are no commands of the notebook.
        page.locator(f"[data-unit='{token}']").focus()
        cells = tab.locator(".jp-Notebook .jp-Cell").count()
        for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "b", "x"):
            tab.keyboard.press(key)
        assert tab.locator(".jp-Notebook .jp-Cell").count() == cells
        assert lab.said(2) == f"text 1 2 4 {token + 1}"

        # From the kernel to the page, its numbers the library's.
        lab.run(3)
        page.locator("caption", has_text="What looks at").wait_for(timeout=30_000)
        assert [page.locator(f"[data-choose={each}]").input_value() for each in ("layer", "head")] == ["3", "5"]
        assert page.locator("[data-unit='4']").get_attribute("aria-selected") == "true"
        weights = bank[0].attention[3][5][:, 4]
        first = page.locator("[data-value]").first
        assert int(first.get_attribute("data-value")) == int(weights.argmax())
        assert float(first.inner_text()) == pytest.approx(float(weights.max()), abs=2e-4)
        assert lab.said(4) == "layer: got 6, 'text 1' has 0 to 5"

        # A second page in the same notebook, of its own choices; then the notebook's dark theme.
        lab.run(5)
        second = lab.cell(5)
        second.get_by_role("tab", name="Numbers").click()
        second.locator("[data-unit]").first.wait_for(timeout=30_000)
        second.get_by_label("is looked at by").check()
        assert page.get_by_label("is looked at by").is_checked()
        second.get_by_label("looks at", exact=True).check()
        assert page.get_by_label("is looked at by").is_checked()
        for each in page.get_by_role("tab").all_inner_texts():
            page.get_by_role("tab", name=each).click()
            second.get_by_role("tab", name=each).click()
            tab.wait_for_timeout(300)
            names = [set(one.locator(".regard").evaluate(NAMES)) for one in (page, second)]
            assert names[0] & names[1] == set()
        assert tab.locator(".regard [id]").count() > 4
        tab.evaluate("window.jupyterapp.commands.execute('apputils:change-theme', {theme: 'JupyterLab Dark'})")
        tab.wait_for_selector(".regard.dark", timeout=30_000)

        # What stays in the saved notebook is covered while the page is there.
        static = page.locator("[class^=regard-static]")
        assert static.count() == 1
        assert not static.is_visible()
        tab.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        tab.wait_for_timeout(2000)
    saved = json.loads((tmp_path / "n.ipynb").read_text(encoding="utf-8"))
    kept = "".join(saved["cells"][1]["outputs"][0]["data"]["text/html"])
    assert "fishing" in unescape(re.sub("<[^>]+>", "", kept))


def test_marimo_shows_the_page_and_keeps_traits_and_page_equal(tab: Any, tmp_path: Path) -> None:
    needs("marimo")
    (tmp_path / "n.py").write_text(MARIMO, encoding="utf-8")
    with marimo(tmp_path / "n.py") as address:
        tab.goto(address)
        tab.click(".regard [role=tab]:has-text('Numbers')", timeout=SECONDS)
        tab.wait_for_selector(".regard [data-unit]", timeout=SECONDS)
        tab.click(".regard [data-unit='5']")
        tab.select_option(".regard [data-choose=layer]", "2")
        tab.get_by_text("chosen: token 5, layer 2.").wait_for(timeout=30_000)
        tab.get_by_text("change", exact=True).click()
        tab.locator(".regard [data-unit='4'][aria-selected=true]").wait_for(timeout=30_000)
        chosen = [tab.input_value(f".regard [data-choose={each}]") for each in ("layer", "head")]
        assert chosen == ["3", "5"]
        tab.get_by_role("tab", name="Numbers").focus()  # in a shadow tree, as marimo has widgets
        tab.keyboard.press("ArrowRight")
        assert tab.get_by_role("tab", selected=True).evaluate("(each) => each.getRootNode().activeElement === each")
        assert tab.get_by_role("tab", name="Numbers").get_attribute("aria-selected") != "true"


def test_a_notebook_that_nbconvert_ran_shows_what_was_found(chromium: Any, tmp_path: Path) -> None:
    needs("nbconvert")
    cells = [TITLE, SHOW, "trace", "trace.attention[2]", PLOT, f"import matplotlib.pyplot\n{PLOT}"]
    (tmp_path / "n.ipynb").write_text(notebook(cells), encoding="utf-8")
    subprocess.run(
        [sys.executable, "-m", "nbconvert", "--execute", "--to", "html", "n.ipynb"],
        cwd=tmp_path, env=environment(tmp_path), check=True, capture_output=True, timeout=300,
    )  # fmt: skip
    context = chromium.new_context(offline=True)
    opened = context.new_page()
    opened.goto((tmp_path / "n.html").as_uri(), wait_until="domcontentloaded")
    outputs = opened.locator(".jp-Cell-outputArea")
    for number in range(2):
        said = " ".join(outputs.nth(number).inner_text().split())
        assert "fishing" in said
        assert "bank" in said
    assert opened.locator("[class^=regard-static]").is_visible()
    assert opened.get_by_text("Mean attention received in this map").is_visible()
    assert opened.locator(".jp-RenderedImage img").count() == 2  # with pyplot, and without
    context.close()


HOST = """async ([source, state]) => {
  const widget = (await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })))).default
  const told = {}
  const model = { get: (name) => told[name] ?? state[name], set: (name, value) => (told[name] = value),
                  save_changes() {}, on() {}, off() {} }
  widget.render({ model, el: document.body })
  window.told = told
}"""


@pytest.mark.parametrize("bare", [False, True])
def test_an_answer_is_alive_and_bare_is_its_view_alone(chromium: Any, bare: bool) -> None:
    needs("anywidget")
    from regard.web.widget import AttentionWidget

    widget = AttentionWidget(sweep().page(), bare=bare)
    names = ["page", "numbers", "text", "layer", "nth", "head", "token", "side", "view", "_static_id", "_bare"]
    context = chromium.new_context()
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.set_content(f"<style>{widget._css}</style>")
    opened.evaluate(HOST, [widget._esm, {name: getattr(widget, name) for name in names}])
    assert opened.locator("[id$='-view']").is_visible()
    assert "river" in opened.locator("[id$='-view']").inner_text()
    parts = [opened.locator(f".regard > {each}").is_visible() for each in ("header", "footer")]
    assert parts == [not bare] * 2
    assert opened.evaluate("told.views[0]") == "panel 0"
    assert errors == []
    context.close()
