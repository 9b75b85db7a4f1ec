"""`regard.show`: the widget in a notebook, a file and a browser elsewhere; what it says where neither is to be had."""

import io
import re
import sys
import types
import webbrowser
from html import unescape
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from rich.console import Console

import regard
from regard.display.notebook import parts_html
from regard.explain.texts.summary import summarise
from regard.explain.wording import number
from regard.questions.see.answer import Seen, see
from regard.questions.see.picture.lines import choose_lines
from regard.questions.see.sentences import findings
from regard.trace.status import exactness
from regard.views import show
from regard.web import html_file
from tests.questions.patch.test_answer import made as sweep
from tests.support.own_models import translator


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that nobody runs here, so that these tests need no page built."""
    folder = tmp_path / "built"
    folder.mkdir()
    monkeypatch.setattr(html_file, "BUILT", folder)
    for name in (*html_file.BUNDLES, "widget"):
        for ending in html_file.ENDINGS:
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
    (html_file.BUILT / "widget.js").exists() or pytest.skip("the page is not built: make page")
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
    with pytest.raises(regard.RegardError, match="got no trace"):
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
    assert "Patches" in (tmp_path / "a.html").read_text(encoding="utf-8")
    with pytest.raises(regard.RegardError, match="bare is for the live page in a notebook"):
        regard.show(sweep(), file=tmp_path / "b.html", bare=True)


def test_a_word(bank, minilm) -> None:
    seen = regard.see(bank[0], "bank", references=minilm.trace(["money", "river"]))
    assert isinstance(seen, Seen)
    assert seen.findings() == findings(summarise([bank[0]], "bank", references=minilm.trace(["money", "river"])))
    assert "• " + seen.findings()[0] in " ".join(str(seen).split())
    assert repr(seen) == str(seen)
    console = Console(width=90, record=True, file=io.StringIO())
    console.print(seen)
    assert "river" in console.export_text()
    with pytest.raises(regard.RegardError, match="word 'lake' is not in the text"):
        regard.see(bank[0], "lake")


def test_html_is_light_escaped_and_offline(minilm) -> None:
    trace = minilm.trace('a <script>alert("1")</script> \x1b[31m river & bank <img src="http://x.y/z">')
    for page in (trace._repr_html_(), regard.see(trace, "bank")._repr_html_()):
        assert page.startswith("<svg ")
        assert "<script" not in page
        assert "<img" not in page
        assert "\x1b" not in page
        assert "&lt;" in page
        assert not re.search(r"<(link|script|img|iframe)|url\(|@import", page)
        assert len(page) < 20_000
    assert parts_html([]) == ""


def test_a_trace_shows_what_is_worth_a_look(bank) -> None:
    page = re.sub(r"<[^>]+>", "", bank[0]._repr_html_())
    assert findings(summarise([bank[0]]))[0][:40] in " ".join(page.split())
    assert repr(bank[0]).startswith("Trace('Write a poem")


def test_a_long_trace_shows_its_size_and_its_status(bank, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(show, "LONG", 1)
    shown = words(bank[0]._repr_html_())
    assert shown.startswith(repr(bank[0])[:40])
    assert exactness([bank[0].status]) in shown


def test_a_map_in_a_notebook(bank) -> None:
    weights = bank[0].attention
    page = weights[0]._repr_html_()
    received = weights[0].dense().double().mean((0, 1)).tolist()
    assert re.findall(r'title="([^"]+)">([^<]+)<', page) == [
        (f"{value:.2f}", token.text) for value, token in zip(received, bank[0].tokens, strict=True)
    ]
    most = max(value for value, token in zip(received, bank[0].tokens, strict=True) if not token.special)
    assert page.count("#2b7bba 65%") == 1  # the token that receives most, special ones, which are grey, aside
    assert f"Mean attention received in this map (strongest color: {most:.2f})" in page
    assert page.count("#888") == 2
    assert all(each._repr_html_() in weights._repr_html_() for each in weights)
    assert "<b>attention[5]</b>" in weights._repr_html_()


def test_a_short_text_is_the_small_stage(bank) -> None:
    seen = regard.see(bank[0], "bank")
    page = seen._repr_html_()
    (line,) = choose_lines(seen.summary, bank[:1], None, None)
    assert page.count("<svg ") == 1
    assert f'aria-label="{bank[0].text}"' in page
    words = re.findall(r"<text [^>]*>([^<]+)</text>", page)
    assert [token.characters for token in bank[0].tokens if not token.special] == [
        word for word, token in zip(words[-len(bank[0].tokens) :], bank[0].tokens, strict=True) if not token.special
    ]
    assert {number(weight) for _, weight, *_ in line.arcs} <= set(words)
    cells = "".join(re.findall(r' d="(M[^"C]+)"', page)).count("z")
    assert cells == 6 * 12
    assert "currentColor" in page
    assert all(word not in page for word in ("<button", "onclick"))
    assert seen.findings()[0] in page
    assert see(bank, "bank")._repr_html_().count("<svg ") == 1


def test_an_encoder_decoder(tmp_path) -> None:
    text, target = "a bank of a river", "la rive"
    model = translator(text, target)
    pair = model.trace(text, target=target)
    seen = regard.see(pair, "bank")
    assert seen.summary.target is not None
    assert "<table" in pair._repr_html_()
    assert regard.see(text, "bank", target=target, model=model).findings() == seen.findings()
    pair.save(tmp_path / "a.safetensors")
    assert regard.see(regard.open(tmp_path / "a.safetensors"), "bank").findings() == seen.findings()


def test_nothing_is_printed_beside_in_a_notebook(bank, monkeypatch, capsys) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert regard.see(bank[0], "bank")._repr_html_().endswith("</ul>")
    assert "• " in str(regard.see(bank[0], "bank"))
    assert capsys.readouterr().out == ""


def test_what_a_model_wrote(tmp_path) -> None:
    written = translator("a bank of a river", "la rive").generate("a bank of a river", max_new_tokens=4)
    page = re.sub(r"<[^>]+>", "", written._repr_html_())
    assert page.startswith(written.text.split("\n")[0][:10])
    assert written.plot().findobj(plt.Axes)


def test_a_table_shows_its_rows(minilm, bank) -> None:
    from regard.explain.weights.head_scores import head_scores

    scores = head_scores(bank[0])
    page = scores._repr_html_()
    lines = [re.findall(r">([^<>]*)</td>", line) for line in page.split("<tr>")]
    row = scores.rows()[3]
    line = next(line for line in lines if line[:3] == ["0", "0", "3"])
    assert f"{row['previous']:.3f}" in line
    assert f"… and {6 * 12 - 40} more rows" in page


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"references": ["river"]}, "references: got str, expected traces of the words"),
        ({"control": ["The bank."]}, "control: got str, expected traces of neutral sentences: model.trace"),
        ({"top": 0}, "top: got 0, expected a number of 1 or more"),
        ({"layer": 9}, "layer 9 is out of range"),
        ({"head": -13}, "head -13 is out of range"),
    ],
)
def test_what_cannot_be_looked_at(bank, given, says: str) -> None:
    with pytest.raises(regard.RegardError, match=says):
        regard.see(bank[0], "bank", **given)


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_one_reference_and_bad_axes(bank, minilm) -> None:
    assert [each.word for each in regard.see(bank[0], "bank", references=minilm.trace("river")).summary.references] == [
        "river"
    ]
    with pytest.raises(regard.RegardError, match="axes: got int, expected matplotlib's Axes"):
        bank[0].attention[0].plot(axes=3)
    with pytest.raises(regard.RegardError, match="head: got 'a', expected a whole number"):
        bank[0].attention[0].plot(head="a")


def test_a_ranking_shows_what_was_found(bank, minilm) -> None:
    why = regard.why(minilm, bank[0], "bank")
    page = " ".join(re.sub(r"<[^>]+>", "", why._repr_html_()).split())
    assert why.findings()[0] in page
    assert f"{why.tokens[0].effect:.2f}" in page
    assert why.findings()[0][:40] in " ".join(str(why).split())
    assert repr(why) == str(why)
