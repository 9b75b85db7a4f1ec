"""A word's paths in a real browser: the curves where the library has them, each layer's shares, and the tables."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.explain.causes.layer_updates import layer_updates
from regard.explain.texts.summary import Summary, summarise
from regard.models.control import trace_control
from regard.trace.trace import Trace
from regard.views.save_page import page_as_seen
from regard.web.html_file import write_page
from tests.web.conftest import AXE, Opened
from tests.web.tables import open_twin, rows_of

pytestmark = pytest.mark.browser
TITLE = "How “bank” moves through the layers"


@pytest.fixture(scope="module")
def references(minilm: Any) -> list[Trace]:
    return [minilm.trace(word) for word in ("river", "money")]


@pytest.fixture(scope="module")
def control(minilm: Any, bank: list[Trace]) -> list[Trace]:
    return trace_control(minilm, bank, "bank")


@pytest.fixture(scope="module")
def seen(bank: list[Trace], references: list[Trace], control: list[Trace]) -> Summary:
    return summarise(bank, "bank", references=references, control=control)


@pytest.fixture
def made(bank: list[Trace], references: list[Trace], control: list[Trace]) -> Any:
    """The page of the two texts, with reference words and neutral sentences."""
    return page_as_seen(bank, None, "bank", references=references, control=control)


@pytest.fixture
def shown(page_of: Any, tmp_path: Path) -> Any:
    """Open the movement of a page: shown(page, width=)."""

    def show(made: Any, width: int = 1000) -> Opened:
        made.opening["view"] = "panel 0"
        file = tmp_path / "movement.html"
        write_page(made, file)
        found: Opened = page_of(None, file=file, width=width)
        found.tab.wait_for_selector(".curves svg")
        return found

    return show


def curve(page: Opened, selector: str) -> torch.Tensor:
    """The corners of a line, in pixels."""
    way = page.tab.get_attribute(selector, "d")
    return torch.tensor([float(n) for n in re.findall(r"-?[\d.]+", way)], dtype=torch.float64).reshape(-1, 2)


@pytest.mark.parametrize("dark", [False, True])
def test_the_curves_are_the_summarys(shown: Any, seen: Summary, made: Any, dark: bool) -> None:
    page = shown(made)
    if dark:
        page.tab.emulate_media(color_scheme="dark")
        page.tab.wait_for_selector(".regard.dark")
    for neutral in seen.neutral:
        panel = f"section[aria-label='{neutral.word}']"
        band = curve(page, f"{panel} .band")
        lines = [curve(page, f"{panel} .mean"), band[:7], band[7:].flip(0)]
        values = [neutral.mean, neutral.low, neutral.high]
        for each in (each for each in seen.references if each.word == neutral.word):
            lines.append(curve(page, f"{panel} [data-curve='{int(each.occurrence) - 1}']"))
            values.append(each.states)
        ys, cosines = torch.stack(lines)[..., 1], torch.tensor(values, dtype=torch.float64)
        scale = ((ys - ys.mean()) * (cosines - cosines.mean())).sum() / ((cosines - cosines.mean()) ** 2).sum()
        assert float(scale) < -50  # up is up, and one scale for all of a word
        assert float((ys - ys.mean() - scale * (cosines - cosines.mean())).abs().max()) < 0.11
    if AXE.exists():
        assert page.violations() == []


def test_what_is_said_is_what_was_computed(shown: Any, seen: Summary, bank: list[Trace], made: Any) -> None:
    page = shown(made, 390)
    for n, (trace, occurrence) in enumerate(zip(bank, seen.occurrences, strict=True)):
        for update in layer_updates(trace, occurrence.as_word()):
            cell = page.tab.locator(f"[data-layer='{update.layer}'] td").nth(n)
            assert cell.locator("[data-share=attention]").inner_text() == f"{update.attention.share:.2f}"
            assert cell.locator("[data-share=rest]").inner_text() == f"{update.feed_forward_share:.2f}"
    assert page.tab.locator("[data-sentence]").count() == 0  # no massive activation
    over = page.tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0


def test_the_slider_the_curves_and_the_layers_look_at_one_state(shown: Any, bank: list[Trace]) -> None:
    page = shown(page_as_seen(bank, None, "bank"))
    steps = page.tab.locator("[data-step]")
    assert steps.all_inner_texts()[1].startswith("Layer 5 moved 2 by ")
    page.tab.focus("input[data-state]")
    page.tab.keyboard.press("Home")
    assert steps.all_inner_texts() == ["Choose a layer to see its update."]
    page.tab.keyboard.press("ArrowRight")
    page.tab.keyboard.press("ArrowRight")
    assert [text.split(" by ")[0] for text in steps.all_inner_texts()] == ["Layer 1 moved 1", "Layer 1 moved 2"]
    assert page.tab.get_attribute("input[data-state]", "aria-valuetext") == "leaves layer 1"
    assert page.tab.get_attribute("[data-layer='1']", "class").split().count("marked") == 1
    page.tab.click("[data-layer='4'] button")
    assert page.tab.input_value("input[data-state]") == "5"
    page.tab.click(".curves rect[data-state='3']")
    assert page.tab.input_value("input[data-state]") == "3"


def test_the_tables_have_every_number(shown: Any, seen: Summary, bank: list[Trace], made: Any) -> None:
    page = shown(made)
    open_twin(page.tab)
    rows = rows_of(page.tab, TITLE)
    assert [row[0] for row in rows] == ["1"] * 7 + ["2"] * 7
    updates = layer_updates(bank[1], seen.occurrences[1].as_word())
    assert [row[4] for row in rows[8:14]] == [f"{each.attention.share:.3f}" for each in updates]
    open_twin(page.tab, "The cosines as a table")
    cosines = rows_of(page.tab, "Similarity of states")
    assert len(cosines) == 2 * 3 * 7 + 7
    river = next(each for each in seen.neutral if each.word == "river")
    assert [row[3] for row in cosines[:7]] == [f"{each:.3f}" for each in seen.references[0].states]
    assert [row[3:] for row in cosines[14:21]] == [
        [f"{each:.3f}" for each in three] for three in zip(river.mean, river.low, river.high, strict=True)
    ]
    pair = seen.pairs[0]
    assert [row[3] for row in cosines[42:48]] == [f"{each:.3f}" for each in pair.hidden_states[:6]]
