"""`regard.show`: the widget in a notebook, a file and a browser elsewhere; what it says where neither is to be had."""

import re
import sys
import types
import webbrowser
from html import unescape
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.questions.see.see import see
from regard.views import show
from regard.web import built_page
from tests.questions.patch.test_panels import made as sweep


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that nobody runs here, so that these tests need no page built."""
    folder = tmp_path / "built"
    folder.mkdir()
    monkeypatch.setattr(built_page, "BUILT", folder)
    for name in (*built_page.BUNDLES, "widget"):
        for ending in built_page.ENDINGS:
            (folder / f"{name}.{ending}").write_text("")


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """IPython's kernel, as far as `show` looks for it."""
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]


def words(html: str) -> str:
    """What a person reads of a piece of HTML."""
    return " ".join(unescape(re.sub("<[^>]+>", "", html)).split())


class Browser:
    """A browser that notes what it is to open, or does not take it."""

    def __init__(self, name: str = "firefox", takes: bool = True) -> None:
        self.name, self.takes, self.seen = name, takes, list[str]()

    def open(self, address: str) -> bool:
        self.seen.append(address)
        return self.takes


def use(browser: Browser | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this the person's browser; None for a machine without one."""

    def get() -> Browser:
        if browser is None:
            raise webbrowser.Error("could not locate runnable browser")
        return browser

    monkeypatch.setattr(webbrowser, "get", get)
    monkeypatch.setattr(webbrowser, "open", lambda address: get().open(address))


def test_outside_a_notebook_the_file_is_opened_in_a_browser(
    bank: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    browser = Browser()
    use(browser, monkeypatch)
    file = regard.show(bank, word="bank")
    assert isinstance(file, Path)
    assert file.name == "page.html"
    assert "fishing" in file.read_text(encoding="utf-8")
    assert browser.seen == [file.as_uri()]
    assert capsys.readouterr().out == f"The page lies in {file}, opened in a browser.\n"
    file.unlink()
    file.parent.rmdir()


@pytest.mark.parametrize("browser", [None, Browser("/usr/bin/lynx"), Browser(takes=False)])
def test_where_no_browser_opens_it_the_file_is_named(
    browser: Browser | None,
    bank: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    use(browser, monkeypatch)
    file = tmp_path / "bank.html"
    assert regard.show(bank[0], file=file) == file
    assert file.exists()
    assert capsys.readouterr().out == f"The page lies in {file}: open it in a browser.\n"
    assert browser is None or browser.seen == ([] if "lynx" in browser.name else [file.as_uri()])


def test_a_refusal_leaves_no_folder_behind(bank: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show.tempfile, "mkdtemp", lambda prefix: str(tmp_path / "new"))
    (tmp_path / "new").mkdir()
    with pytest.raises(regard.RegardError, match="xylophone"):
        regard.show(bank, word="xylophone")
    assert not (tmp_path / "new").exists()


def test_in_a_notebook_it_is_the_widget(bank: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    monkeypatch.setattr(show, "in_notebook", lambda: True)
    use(None, monkeypatch)
    (built_page.BUILT / "widget.js").exists() or pytest.skip("the page is not built: make page")
    widget: Any = regard.show(bank, word="bank", layers=[1, 3], steps=True)
    assert widget.texts == ["text 1", "text 2"]
    assert sorted({call["layer"] for call in widget.page["calls"]}) == [1, 3]
    assert widget.page["steps"]
    assert words(widget._static) == words(see(bank, "bank")._repr_html_())


@pytest.mark.usefixtures("kernel")
def test_a_file_is_written_in_a_notebook_too_where_it_is_asked_for(
    bank: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(None, monkeypatch)
    assert regard.show(bank, file=tmp_path / "page.html") == tmp_path / "page.html"


@pytest.mark.usefixtures("kernel")
def test_without_anywidget_one_line_names_the_extra_and_the_rest_is_what_a_trace_shows(
    bank: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "find_spec", lambda name: None)
    shown: Any = regard.show(bank[0])
    page = words(shown._repr_html_())
    assert page.startswith("The live page needs anywidget: pip install 'regard[notebook]' and restart the kernel.")
    assert page.endswith(words(bank[0]._repr_html_()))
    with pytest.raises(regard.RegardError, match="xylophone"):
        regard.show(bank[0], word="xylophone")
    with pytest.raises(regard.RegardError, match="given no trace"):
        regard.show([])


def test_a_notebook_is_ipythons_kernel_or_marimo(monkeypatch: pytest.MonkeyPatch) -> None:
    def among(ipython: Any, marimo: Any) -> bool:
        for name, module in (("IPython", ipython), ("marimo", marimo)):
            if module is None:
                monkeypatch.delitem(sys.modules, name, raising=False)
            else:
                monkeypatch.setitem(sys.modules, name, module)
        return show.in_notebook()

    def ipython(shell: Any) -> Any:
        return types.SimpleNamespace(get_ipython=lambda: shell)

    def marimo(running: bool) -> Any:
        return types.SimpleNamespace(running_in_notebook=lambda: running)

    assert not among(None, None)
    assert not among(ipython(None), marimo(False))
    assert not among(ipython(types.SimpleNamespace()), None)  # IPython in a terminal
    assert among(ipython(types.SimpleNamespace(kernel=object())), None)
    assert among(None, marimo(True))


def test_what_was_found_is_a_file_and_in_a_notebook_alive(
    kernel: None, bank: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "find_spec", lambda name: None)
    page = words(regard.show([bank[0], sweep()])._repr_html_())  # type: ignore[union-attr]
    assert page.startswith("The live page needs anywidget")
    assert words(sweep()._repr_html_()) in page
    use(Browser(takes=False), monkeypatch)
    assert regard.show(sweep(), file=tmp_path / "a.html") == tmp_path / "a.html"
    assert "Patch by patch" in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(regard.RegardError, match="bare: it is for a notebook's live page"):
        regard.show(sweep(), file=tmp_path / "b.html", bare=True)
