"""A word's paths in a real browser: every point where the library puts it, said and reached by pointer and keys."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.display.sentences import number_text
from regard.explain.causes.layer_updates import layer_updates
from regard.explain.texts.summary import Summary, summarise
from regard.models.control import trace_control
from regard.trace.trace import Trace
from regard.views.save_page import page_as_seen
from regard.web.built_page import built_shell
from regard.web.html_file import write_html
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
        write_html(made, file, built_shell(made))
        found: Opened = page_of(None, file=file, width=width)
        found.tab.wait_for_selector(".curves svg")
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
        for n, point in zip(summary.movement.states, path or [], strict=True)
    }


def one_scale(drawn: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    """Assert that marks stand where the library has them, in the same scale across and up."""
    assert drawn.keys() == wanted.keys()
    names = list(wanted)
    pixels, plane = (torch.stack([each[name] for name in names]) for each in (drawn, wanted))
    plane = plane * torch.tensor([1.0, -1.0])  # up is up
    spread = plane - plane.mean(0)
    scale = ((pixels - pixels.mean(0)) * spread).sum() / (spread**2).sum()
    assert float(scale) > 100
    assert float((pixels - pixels.mean(0) - scale * spread).abs().max()) < 0.01


@pytest.mark.parametrize("width", [390, 1000])
def test_every_end_is_the_librarys_with_one_scale_on_both_axes(
    shown: Any, seen: Summary, made: Any, width: int
) -> None:
    page = shown(made, width)
    wanted = points(seen)
    assert seen.movement is not None
    for word, point in zip(("river", "money"), seen.movement.references, strict=True):
        wanted[word] = torch.tensor(point, dtype=torch.float64)
    wanted["neutral"] = torch.tensor(seen.movement.neutral, dtype=torch.float64)
    drawn = places(page, "data-at") | places(page, "data-mark")
    middle = page.tab.locator("[data-middle]")
    drawn["neutral"] = torch.tensor([float(middle.get_attribute(name)) for name in ("cx", "cy")], dtype=torch.float64)
    one_scale(drawn, wanted)
    assert len(drawn) == 2 + 2 + 1
    # an arrow goes from the neutral mean towards each end outside the range, and to no other
    arrows = page.tab.eval_on_selector_all(
        "[data-arrow]", "all => all.map(e => [e.dataset.arrow, e.getAttribute('d')])"
    )
    assert [label for label, _ in arrows] == [
        label for label, far in zip("12", seen.movement.leaves, strict=True) if far
    ]
    for label, way in arrows:
        x, y, to_x, to_y = (float(n) for n in re.findall(r"-?[\d.]+(?:e-?\d+)?", way)[:4])
        along = drawn[f"{label} 6"] - drawn["neutral"]
        step = torch.tensor([to_x - x, to_y - y], dtype=torch.float64)
        assert float(torch.cosine_similarity(step, along, dim=0)) > 0.9999
    colours = {page.tab.get_attribute(f"[data-path='{label}']", "stroke") for label in ("1", "2")}
    assert len(colours) == 2
    over = page.tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0


def test_the_path_of_a_word_alone_goes_from_mark_to_mark(shown: Any, bank: list[Trace]) -> None:
    page = shown(page_as_seen(bank, None, "bank"))
    drawn = places(page, "data-at")
    one_scale(drawn, points(summarise(bank, "bank")))
    assert len(drawn) == 2 * 7
    for label in ("1", "2"):
        line = page.tab.get_attribute(f"[data-path='{label}']", "points").split(" ")
        corners = torch.tensor([[float(n) for n in each.split(",")] for each in line], dtype=torch.float64)
        assert torch.allclose(corners, torch.stack([drawn[f"{label} {n}"] for n in range(7)]), atol=1e-3)
    shapes = {page.tab.get_attribute(f"[data-at='{label} 0']", "d") for label in ("1", "2")}
    assert len(shapes) == 2


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


def test_where_no_plane_is_right_the_page_says_so(shown: Any, minilm: Any, bank: list[Trace]) -> None:
    page = shown(page_as_seen(bank[:1], None, "bank", references=[minilm.trace("river")]))
    assert page.tab.locator("[data-plane]").count() == 0
    said = page.tab.locator("[data-sentence]").all_inner_texts()
    assert said == ["Only the curves are drawn. There are no two distances to compare."]
    assert page.tab.locator("[data-curve]").count() == 1


def test_what_is_said_is_what_was_computed(shown: Any, seen: Summary, bank: list[Trace], made: Any) -> None:
    page = shown(made)
    said = page.tab.locator("[data-sentence]").all_inner_texts()
    assert "384 dimensions" in said[0]
    assert seen.movement is not None
    assert f"{sum(seen.movement.share):.0%} of the variance" in said[-1]
    places_ = places(page, "data-at")
    page.tab.locator("[data-plane]").evaluate("box => box.scrollIntoView({block: 'center'})")
    box = page.tab.locator("[data-plane] svg").bounding_box()
    x, y = places_["1 6"].tolist()
    page.tab.mouse.move(box["x"] + x, box["y"] + y)
    ends = [t.last_hidden_state[o.tokens].double().mean(0) for t, o in zip(bank, seen.occurrences, strict=True)]
    alike = torch.cosine_similarity(ends[0], ends[1], dim=0)
    sentence = page.tab.inner_text("[data-says]")
    assert sentence.startswith("1 (text 1) leaves layer 5: the contextual embedding: cosine to the state before ")
    assert f"; here to 2: {float(alike):.3f}" in sentence
    for each in seen.references:
        assert (f"“{each.word}” {each.last_hidden_state:.3f}" in sentence) == (each.occurrence == "1")
    # shares of each layer of each text
    for n, (trace, occurrence) in enumerate(zip(bank, seen.occurrences, strict=True)):
        for update in layer_updates(trace, occurrence.as_word()):
            cell = page.tab.locator(f"[data-layer='{update.layer}'] td").nth(n)
            assert cell.locator("[data-share=attention]").inner_text() == f"{update.attention_share:.2f}"
            assert cell.locator("[data-share=rest]").inner_text() == f"{update.feed_forward_share:.2f}"
    x, y = places(page, "data-mark")["river"].tolist()
    page.tab.mouse.move(box["x"] + x, box["y"] + y)
    rivers = [each.last_hidden_state for each in seen.references if each.word == "river"]
    assert page.tab.inner_text("[data-says]").endswith(f"cosine to the end of 1: {rivers[0]:.3f}, 2: {rivers[1]:.3f}.")
    if AXE.exists():
        assert page.violations() == []


def test_keys_the_slider_and_the_layers_look_at_one_state(shown: Any, bank: list[Trace]) -> None:
    page = shown(page_as_seen(bank, None, "bank"))
    says, step = (lambda: page.tab.inner_text("[data-says]")), (lambda: page.tab.inner_text("[data-step]"))
    page.tab.focus("[data-plane]")
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
    page.tab.focus("input[data-state]")
    page.tab.keyboard.press("ArrowRight")
    assert says().startswith("2 (text 2) leaves layer 2:")
    assert page.tab.get_attribute("input[data-state]", "aria-valuetext") == "leaves layer 2"
    page.tab.click("[data-layer='4'] button")
    assert says().startswith("2 (text 2) leaves layer 4:")
    assert page.tab.input_value("input[data-state]") == "5"


def test_the_tables_have_every_number(shown: Any, seen: Summary, bank: list[Trace], made: Any) -> None:
    page = shown(made)
    open_twin(page.tab)
    rows = rows_of(page.tab, TITLE)
    wanted = points(seen)
    assert len(rows) == 2 * 7 + 2 + 1
    for n, row in enumerate(rows[:14]):
        point = wanted.get(f"{row[0]} {n % 7}")
        figures = ["–", "–"] if point is None else [number_text(float(x), 3) for x in point]
        assert (row[0], row[2:4]) == (str(1 + n // 7), figures)
    assert [row[0] for row in rows[14:]] == ["◆ river", "◆ money", "○ neutral"]
    updates = layer_updates(bank[1], seen.occurrences[1].as_word())
    assert [row[6] for row in rows[8:14]] == [f"{each.attention_share:.3f}" for each in updates]
    open_twin(page.tab, "The cosines as a table")
    cosines = rows_of(page.tab, "How alike states are")
    assert len(cosines) == 2 * 3 * 7 + 7
    river = next(each for each in seen.neutral if each.word == "river")
    assert [row[3] for row in cosines[:7]] == [f"{each:.3f}" for each in seen.references[0].states]
    assert [row[3:] for row in cosines[14:21]] == [
        [f"{each:.3f}" for each in three] for three in zip(river.mean, river.low, river.high, strict=True)
    ]
    pair = seen.pairs[0]
    assert [row[3] for row in cosines[42:48]] == [f"{each:.3f}" for each in pair.hidden_states[:6]]
