"""A word's paths in a real browser: every point where the library puts it, said and reached by pointer and keys."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.explain.causes.layer_updates import layer_updates
from regard.explain.texts.summary import Summary, summarise
from regard.trace.trace import Trace
from regard.web.assemble import Opening, page_of
from regard.web.built_page import built_shell
from regard.web.html_file import write_html
from tests.web.conftest import AXE, Opened
from tests.web.tables import open_twin, rows_of

pytestmark = [pytest.mark.browser, pytest.mark.slow]
TITLE = "How “bank” moves through the layers"


@pytest.fixture(scope="module")
def references(minilm: Any) -> list[Trace]:
    return [minilm.trace(word) for word in ("river", "money")]


@pytest.fixture(scope="module")
def seen(bank: list[Trace], references: list[Trace]) -> Summary:
    return summarise(bank, "bank", references=references)


@pytest.fixture
def shown(page_of: Any, tmp_path: Path) -> Any:
    """Open the movement of a page: shown(page, width=)."""

    def show(made: Any, width: int = 1000) -> Opened:
        made.opening["view"] = "panel 0"
        file = tmp_path / "movement.html"
        write_html(made, file, built_shell())
        found: Opened = page_of(None, file=file, width=width)
        found.tab.wait_for_selector("[role=application] svg")
        return found

    return show


def places(page: Opened, attribute: str) -> dict[str, torch.Tensor]:
    """Where marks stand, in pixels, by what an attribute says they are."""
    read = f"all => all.map(e => [e.getAttribute('{attribute}'), e.getAttribute('transform')])"
    found = page.tab.eval_on_selector_all(f"[{attribute}]", read)
    return {
        name: torch.tensor([float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", where)], dtype=torch.float64)
        for name, where in found
    }


def points(summary: Summary) -> dict[str, torch.Tensor]:
    """Where the library puts every state, by the same names."""
    assert summary.movement is not None
    return {
        f"{occurrence.label} {n}": torch.tensor(point, dtype=torch.float64)
        for occurrence, path in zip(summary.occurrences, summary.movement.words, strict=True)
        for n, point in enumerate(path or [])
    }


@pytest.mark.parametrize("width", [390, 1000])
def test_every_point_is_the_librarys_with_one_scale_on_both_axes(
    shown: Any, seen: Summary, bank: list[Trace], references: list[Trace], width: int
) -> None:
    page = shown(page_of(bank, None, Opening(word="bank"), references=references), width)
    wanted = points(seen)
    assert seen.movement is not None
    for word, path in zip(("river", "money"), seen.movement.references, strict=True):
        wanted[word] = torch.tensor(path[-1], dtype=torch.float64)  # type: ignore[index]
    drawn = places(page, "data-at") | places(page, "data-mark")
    assert drawn.keys() == wanted.keys()
    assert len(drawn) == 2 * 7 + 2
    names = list(wanted)
    pixels, plane = (torch.stack([each[name] for name in names]) for each in (drawn, wanted))
    plane = plane * torch.tensor([1.0, -1.0])  # up is up
    spread = plane - plane.mean(0)
    scale = ((pixels - pixels.mean(0)) * spread).sum() / (spread**2).sum()
    assert float(scale) > 100
    assert float((pixels - pixels.mean(0) - scale * spread).abs().max()) < 0.01
    # the line goes from mark to mark
    for label in ("1", "2"):
        line = page.tab.get_attribute(f"[data-path='{label}']", "points").split(" ")
        corners = torch.tensor([[float(n) for n in each.split(",")] for each in line], dtype=torch.float64)
        assert torch.allclose(corners, torch.stack([drawn[f"{label} {n}"] for n in range(7)]), atol=1e-3)
    colours = {page.tab.get_attribute(f"[data-path='{label}']", "stroke") for label in ("1", "2")}
    shapes = {page.tab.get_attribute(f"[data-at='{label} 0']", "d") for label in ("1", "2")}
    assert (len(colours), len(shapes)) == (2, 2)
    over = page.tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0


def test_what_is_said_is_what_was_computed(
    shown: Any, seen: Summary, bank: list[Trace], references: list[Trace]
) -> None:
    page = shown(page_of(bank, None, Opening(word="bank"), references=references))
    said = page.tab.locator("[data-sentence]").all_inner_texts()
    assert said[0].endswith("nearer here is nearer in all 384 dimensions (has the larger cosine).")
    assert seen.movement is not None
    assert " + ".join(f"{part:.0%}" for part in seen.movement.share) in said[1]
    places_ = places(page, "data-at")
    page.tab.locator("[role=application]").evaluate("box => box.scrollIntoView({block: 'center'})")
    box = page.tab.locator("[role=application] svg").bounding_box()
    x, y = places_["1 6"].tolist()
    page.tab.mouse.move(box["x"] + x, box["y"] + y)
    ends = [t.contextual[o.tokens].double().mean(0) for t, o in zip(bank, seen.occurrences, strict=True)]
    alike = torch.cosine_similarity(ends[0], ends[1], dim=0)
    sentence = page.tab.inner_text("[data-says]")
    assert sentence.startswith("1 (text 1) leaves layer 5: the contextual embedding: cosine to the state before ")
    assert f"; here to 2: {float(alike):.3f}" in sentence
    for each in seen.references:
        assert (f"“{each.word}” {each.contextual:.3f}" in sentence) == (each.occurrence == "1")
    # shares of each layer of each text
    for n, (trace, occurrence) in enumerate(zip(bank, seen.occurrences, strict=True)):
        for update in layer_updates(trace, occurrence.as_word()):
            cell = page.tab.locator(f"[data-layer='{update.layer}'] td").nth(n)
            assert cell.locator("[data-share=attention]").inner_text() == f"{update.attention_share:.2f}"
            assert cell.locator("[data-share=rest]").inner_text() == f"{update.feed_forward_share:.2f}"
    x, y = places(page, "data-mark")["river"].tolist()
    page.tab.mouse.move(box["x"] + x, box["y"] + y)
    rivers = [each.contextual for each in seen.references if each.word == "river"]
    assert page.tab.inner_text("[data-says]").endswith(f"cosine to the end of 1: {rivers[0]:.3f}, 2: {rivers[1]:.3f}.")
    if AXE.exists():
        assert page.violations() == []


def test_keys_the_slider_and_the_layers_look_at_one_state(shown: Any, bank: list[Trace]) -> None:
    page = shown(page_of(bank, None, Opening(word="bank")))
    says, step = (lambda: page.tab.inner_text("[data-says]")), (lambda: page.tab.inner_text("[data-step]"))
    page.tab.focus("[role=application]")
    page.tab.keyboard.press("Home")
    assert says().startswith("1 (text 1) enters layer 0")
    assert step().startswith("Choose a layer")
    page.tab.keyboard.press("ArrowRight")
    page.tab.keyboard.press("ArrowRight")
    assert says().startswith("1 (text 1) leaves layer 1:")
    assert step().startswith("Layer 1 moved 1 by ")
    page.tab.keyboard.press("ArrowDown")
    assert says().startswith("2 (text 2) leaves layer 1:")
    assert step().startswith("Layer 1 moved 2 by ")
    assert page.tab.get_attribute("[data-layer='1']", "class").split().count("marked") == 1
    page.tab.focus("[data-state]")
    page.tab.keyboard.press("ArrowRight")
    assert says().startswith("2 (text 2) leaves layer 2:")
    assert page.tab.get_attribute("[data-state]", "aria-valuetext") == "leaves layer 2"
    page.tab.click("[data-layer='4'] button")
    assert says().startswith("2 (text 2) leaves layer 4:")
    assert page.tab.input_value("[data-state]") == "5"
    page.tab.focus("[role=application]")
    page.tab.keyboard.press("ArrowDown")  # below the paths: the tokens' dots
    assert re.fullmatch(r"“.+”, a token of text 1, at its end\.", says().strip())
    page.tab.keyboard.press("ArrowUp")
    assert says().startswith("2 (text 2) leaves layer 4:")


def test_the_tables_have_every_number(shown: Any, seen: Summary, bank: list[Trace], references: list[Trace]) -> None:
    page = shown(page_of(bank, None, Opening(word="bank"), references=references))
    open_twin(page.tab)
    rows = rows_of(page.tab, TITLE)
    wanted = points(seen)
    assert len(rows) == 16
    for row, (name, point) in zip(rows, wanted.items(), strict=False):
        assert (row[0], row[2:4]) == (name[0], [f"{float(each):.3f}".replace("-0.000", "0.000") for each in point])
    assert [row[0] for row in rows[14:]] == ["◆ river", "◆ money"]
    updates = layer_updates(bank[1], seen.occurrences[1].as_word())
    assert [row[6] for row in rows[8:14]] == [f"{each.attention_share:.3f}" for each in updates]
    open_twin(page.tab, "The cosines between paths as a table")
    cosines = rows_of(page.tab, "How alike states are")
    assert len(cosines) == 7 + 4
    pair = seen.pairs[0]
    assert [row[3] for row in cosines[:6]] == [f"{each:.3f}" for each in pair.hidden_states[:6]]
