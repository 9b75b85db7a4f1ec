"""The widget in Python alone: its traits, what they refuse, and what a saved notebook keeps of it."""

import re
from pathlib import Path
from typing import Any

import pytest

import regard
from regard.views.save_page import page_as_seen
from regard.web import html_file
from regard.web.assemble import page_of
from regard.web.page import Page

pytest.importorskip("anywidget", reason="anywidget is not installed")

import traitlets
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from regard.web.widget import AttentionWidget
from tests.questions.patch.test_answer import made as sweep
from tests.support.pairs import make_pair


@pytest.fixture(autouse=True)
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that nobody runs here, so that these tests need no page built."""
    monkeypatch.setattr(html_file, "BUILT", tmp_path)
    (tmp_path / "widget.js").write_text("export default {}")
    (tmp_path / "widget.css").write_text(".regard {}")


@pytest.fixture(scope="module")
def page(bank: Any) -> Page:
    return page_as_seen(bank, word="bank")


@pytest.fixture
def widget(page: Page) -> AttentionWidget:
    return AttentionWidget(page, "<p>what was found</p>")


def test_traits_are_where_the_page_opens(widget: AttentionWidget, bank: Any) -> None:
    assert widget.texts == ["text 1", "text 2"]
    assert (widget.text, widget.side, widget.view) == ("text 1", "gives", "overview")
    assert widget.token == bank[0].word("bank")[0].tokens[0]
    call = widget.page["calls"][widget.page["opening"]["call"]]
    assert (widget.layer, widget.nth) == (call["layer"], call["nth"])
    layer, head = (int(n) for n in re.findall(r"layer (\d+), head (\d+)", widget.page["findings"][0])[0])
    assert (layer, head) == (widget.layer, widget.head)


def test_traits_can_be_set_and_negative_numbers_count_from_the_end(widget: AttentionWidget) -> None:
    widget.layer, widget.head, widget.token = -1, -1, -1
    assert (widget.layer, widget.head) == (5, 11)
    assert widget.token == len(widget.page["texts"][0]["tokens"]["text"]) - 1
    widget.head = widget.token = None
    assert repr(widget) == "AttentionWidget('text 1': layer 5, mean of heads, no token chosen)"


@pytest.mark.parametrize(
    ("trait", "value", "says"),
    [
        ("layer", 6, "layer: got 6, 'text 1' has 0 to 5"),
        ("head", 12, "head: got 12, layer . of 'text 1' has 0 to 11"),
        ("nth", 1, "nth: got 1, layer . of 'text 1' has 0"),
        ("token", 99, "token: got 99, 'text 1' has 0 to 1"),
        ("text", "text 3", "text: got 'text 3', the page has 'text 1', 'text 2'"),
        ("side", "both", "side: got 'both', the page has 'gives', 'receives'"),
        ("view", "film", "view: got 'film', the page has 'overview'"),
        ("view", "panel x", "view: got 'panel x', the page has 'overview', 'map'"),
    ],
)
def test_what_is_not_there_is_refused_and_changes_nothing(
    widget: AttentionWidget, trait: str, value: Any, says: str
) -> None:
    before = getattr(widget, trait)
    with pytest.raises(regard.RegardError, match=says) as raised:
        setattr(widget, trait, value)
    assert isinstance(raised.value, traitlets.TraitError)
    assert getattr(widget, trait) == before


def test_views_are_those_that_the_page_told(widget: AttentionWidget) -> None:
    widget.view = "steps"
    widget.set_state({"views": ["tokens", "map"], "view": "tokens"})
    widget.view = "map"
    with pytest.raises(regard.RegardError, match="view: got 'steps', the page has 'tokens', 'map'"):
        widget.view = "steps"


def test_another_text_keeps_layer_and_head_and_lets_the_token_go(widget: AttentionWidget) -> None:
    widget.layer, widget.head = 4, 7
    widget.text = "text 2"
    assert (widget.layer, widget.head, widget.token) == (4, 7, None)


def test_a_pair_fits_layers_and_tokens_to_what_is_chosen(tmp_path: Path) -> None:
    folder = tmp_path / "pair"
    make_pair(folder)
    pair = regard.load(folder).trace("a man on the river", target="un homme sur")
    widget = AttentionWidget(page_of(pair))
    assert widget.texts == ["source", "target", "target → source"]
    widget.text, widget.layer = "target", 2
    widget.text = "source"  # of two layers
    assert widget.layer == 0
    widget.text, widget.token = "target → source", -1
    assert widget.token == len(pair.decoder.tokens) - 1
    widget.side = "receives"  # tokens are now of the source
    assert widget.token is None
    widget.token = -1
    assert widget.token == len(pair.encoder.tokens) - 1


def test_a_saved_notebook_keeps_the_sentences_that_the_page_covers(widget: AttentionWidget) -> None:
    InteractiveShell.instance()
    try:
        with capture_output() as shown:
            widget._ipython_display_()
    finally:
        InteractiveShell.clear_instance()
    static, live = (each.data for each in shown.outputs)
    assert static["text/html"] == f'<div class="{widget._static_id}"><p>what was found</p></div>'
    assert live["application/vnd.jupyter.widget-view+json"]["model_id"] == widget.model_id


def test_an_answer_without_attention_has_its_view_alone() -> None:
    found = sweep()
    widget = AttentionWidget(found.page(), "<p>what was found</p>", bare=True)
    assert (widget.view, widget.text, widget.texts, widget.page["panels"][0]["name"]) == ("panel 0", "", [], "Patches")
    assert (widget._bare, AttentionWidget(found.page())._bare) == (True, False)
    widget.view = "panel 0"
    for name, value in {"text": "text 1", "layer": 2, "head": 1, "token": 3}.items():
        with pytest.raises(regard.RegardError, match=f"{name}: this page has no attention to choose from"):
            setattr(widget, name, value)
    assert repr(widget) == f"AttentionWidget({widget.page['title']!r}: panel 0)"


def test_without_the_page_built_one_line_says_so(bank: Any, tmp_path: Path) -> None:
    (tmp_path / "widget.js").unlink()
    with pytest.raises(regard.RegardError, match=r"the page is not built: run make page \(widget.js is not there"):
        AttentionWidget(page_of(bank))
