"""The pages of patches, of an outcome's parts and of a score in a browser: every number against the library's."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.diffusion.answer import PromptPainting
from regard.display.sentences import number_text
from regard.explain.causes.outcomes import cosine
from regard.questions.patch.answer import describe_patch
from regard.questions.why.score import short_score_part_name
from regard.train.evolve import evolution
from tests.questions.patch.test_answer import made
from tests.support import own_models
from tests.support.prompt_heat import painted
from tests.web.tables import open_twin, read_number, rows_of, total_of

pytestmark = pytest.mark.browser
RIVER, MONEY = "We sat on the quiet river bank.", "We sat on the quiet money bank."
NASTY = "<b>bold</b> </script> שלום 3"
TABS = ["Patches", "Heads", "Source tokens", "Layers", "Components"]
OF_SCORE = ["By source token", "By layer", "By writer", "By kind", "Largest pairs"]

PIXELS = """() => {  // of the large grid: red, green, blue and opacity of each
    const canvas = document.querySelector("[role=tabpanel] .cells canvas"), copy = document.createElement("canvas");
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const pen = copy.getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    const { data } = pen.getImageData(0, 0, copy.width, copy.height);
    return Array.from({ length: data.length / 4 }, (_, n) => Array.from(data.slice(4 * n, 4 * n + 4)));
}"""


@pytest.fixture(scope="module")
def found(minilm: Any) -> tuple[Any, Any, Any]:
    """A sweep, an outcome's parts, a score: all of one text."""
    trace = minilm.trace(RIVER)
    sweep = regard.patch_sweep(minilm, RIVER, MONEY, cosine("bank", trace["bank"], "the river's bank"))
    parts = regard.attribution(minilm, trace, "bank", toward=trace["river"])
    score = regard.score_sources(minilm, trace, "bank", "river", layer=2, head=3)
    return sweep, parts, score


@pytest.fixture
def opened(page_of: Any, found: Any, tmp_path: Path) -> Any:
    """The page of all three. width: of the window."""

    def make(width: int = 1000) -> Any:
        regard.save_page(list(found), tmp_path / "all.html")
        return page_of(None, file=tmp_path / "all.html", width=width)

    return make


def point(tab: Any, row: int, column: int, rows: int, columns: int) -> tuple[float, float]:
    """Where a cell of the grid lies."""
    canvas = tab.locator("[role=tabpanel] canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    return box["x"] + box["width"] * (column + 0.5) / columns, box["y"] + box["height"] * (row + 0.5) / rows


def test_all_stand_in_one_file_each_in_its_tabs(opened: Any, found: Any) -> None:
    page = opened()
    assert page.tab.locator("[role=tab]").all_inner_texts() == [*TABS, "The score"]
    page.open_view("The score")
    assert [each.get_attribute("data-grid") for each in page.tab.locator("[data-grid]").all()] == OF_SCORE
    said = page.tab.locator(".findings :is(h1, li:not(:has(.fold)))").all_inner_texts()
    first, *rest = found[2].findings()
    own = [each.replace("\u2068", "").replace("\u2069", "") for each in said[-len(rest) - 1 :]]
    assert own == [f"{found[2].title()}. {first}", *rest]


def test_each_patch_says_what_it_did_to_hand_and_keyboard(opened: Any, found: Any) -> None:
    page, sweep = opened(), found[0]
    rows, columns = len(sweep.layers), len(sweep.columns)
    for row, column in ((0, 0), (4, 7), (6, columns - 1)):
        page.tab.mouse.move(*point(page.tab, row, column, rows, columns))
        assert page.tab.inner_text("[data-says]") == describe_patch(sweep, row, column)
    page.tab.focus("[role=application]")
    page.tab.keyboard.press("Home")
    for row in range(rows - 1, -1, -1):
        assert page.tab.inner_text("[data-says]") == describe_patch(sweep, row, 0)
        page.tab.keyboard.press("ArrowUp")
    open_twin(page.tab)
    shares = [read_number(each[2]) for each in rows_of(page.tab, sweep.panels()[0].title)]
    np.testing.assert_allclose(shares, np.array(sweep.shares).ravel(), atol=0.0051)


def test_a_head_opens_into_its_source_tokens(opened: Any, found: Any) -> None:
    page, parts = opened(), found[1]
    page.open_view("Heads")
    by_writer, by_token = dict(parts.by()), dict(parts.by("token"))
    most = max(((name, abs(each)) for name, each in by_writer.items() if "head" in name), key=lambda pair: pair[1])[0]
    assert page.tab.inner_text("[data-chosen-cell]") == most  # it opens at the head that matters most
    tokens = parts.tokens[None]

    def shown(layer: int, head: int) -> None:
        assert page.tab.inner_text("[data-chosen-cell]") == f"layer {layer}, head {head}"
        titles = page.tab.locator("[data-token]").evaluate_all("all => all.map(each => each.title)")
        for n, (title, token) in enumerate(zip(titles, tokens, strict=True)):
            name, _, value = title.partition(": contribution ")
            assert name == f"{n} “{token.text}”"
            expected = by_token.get(f"layer {layer}, head {head} from “{token.text}” ({n})", 0.0)
            assert read_number(value) == pytest.approx(expected, abs=0.0101)

    page.tab.mouse.click(*point(page.tab, 1, 10, 6, 12))
    shown(1, 10)
    page.tab.focus("[role=application]")
    for key in ("ArrowDown", "ArrowLeft", "Enter"):
        page.tab.keyboard.press(key)
    name, _, value = page.tab.inner_text("[data-says]").partition(": contribution ")
    assert name == "layer 2 · head 9"
    assert read_number(value) == pytest.approx(by_writer["layer 2, head 9"], abs=0.0101)
    shown(2, 9)
    open_twin(page.tab)
    grid = [read_number(each[2]) for each in rows_of(page.tab, "Contribution of each head")]
    expected = [by_writer[f"layer {layer}, head {head}"] for layer in range(6) for head in range(12)]
    np.testing.assert_allclose(grid, expected, atol=0.0101)
    page.open_view("Layers")
    assert len(rows_of(page.tab, "Contribution of each layer")) == 7  # what is of no layer, and each of 6
    assert read_number(total_of(page.tab, "Contribution of each layer")[1]) == pytest.approx(parts.value, abs=0.0101)


@pytest.mark.parametrize(("name", "by"), [("By source token", "source"), ("By layer", "layer"), ("By kind", "kind")])
def test_pairs_and_the_sums_of_both_sides_are_told(opened: Any, found: Any, name: str, by: Any) -> None:
    page, beside = opened(), found[2].beside_the_others()
    page.open_grid(name, "The score")
    queries, keys, scores = beside.table(by)
    queries, keys = ([short_score_part_name(each) for each in names] for names in (queries, keys))

    def said() -> str:
        return str(page.tab.inner_text("[data-says]"))

    def number(value: Any) -> str:
        return number_text(float(value), 2, unbounded=True)

    page.tab.focus("[role=application]")
    page.tab.keyboard.press("ArrowDown")
    assert said() == f"{queries[0]} · {keys[0]}: score {number(scores[0, 0])}"
    page.tab.keyboard.press("End")
    page.tab.keyboard.press("ArrowRight")
    assert said() == f"{queries[0]} · sum of row: score {number(scores[0].sum())}"
    for _ in queries:
        page.tab.keyboard.press("ArrowDown")
    assert said() == f"sum of all cells: score {number(beside.score)}"
    page.tab.keyboard.press("ArrowLeft")
    assert said().startswith(f"sum of column · {keys[-1]}: score ")
    assert page.tab.inner_text("[data-all]") == f"sum {number(beside.score)}"
    for side, sums in (("rows", scores.sum(1)), ("columns", scores.sum(0))):
        bars = page.tab.locator(f"[data-margin={side}] [data-bar]")
        long = bars.evaluate_all(
            "all => all.map(each => Math.max(parseFloat(each.style.width), parseFloat(each.style.height)))"
            if side == "none"
            else f"all => all.map(each => parseFloat(each.style.{'width' if side == 'rows' else 'height'}))"
        )
        sizes = sums.abs().numpy()
        np.testing.assert_allclose(np.array(long) / max(long), sizes / sizes.max(), atol=1e-3)
    box = page.tab.locator("[data-margin=rows]").bounding_box()
    page.tab.mouse.move(box["x"] + 5, box["y"] + 2)
    assert said() == f"{queries[0]} · sum of row: score {number(scores[0].sum())}"
    open_twin(page.tab)
    title = page.tab.inner_text("[role=tabpanel] h2")
    np.testing.assert_allclose(
        [read_number(row[2]) for row in rows_of(page.tab, title)], scores.numpy().ravel(), atol=5.1e-3
    )


def test_what_stands_in_a_text_is_text(page_of: Any, tmp_path: Path) -> None:
    found = made(clean=NASTY, corrupted=NASTY, columns=(f"{NASTY} 1", "'<i>'", "\x1b[31mred 3"), outcome=NASTY)
    regard.save_page(found, tmp_path / "a.html")
    page = page_of(None, file=tmp_path / "a.html")
    page.tab.focus("[role=application]")
    page.tab.keyboard.press("Home")
    assert f"Hidden states, “{NASTY}” (1) at the input, from “a”: " in page.tab.inner_text("[data-says]")
    assert page.tab.locator("main :is(b, i)").count() == 0


@pytest.mark.parametrize("width", [390, 1000])
def test_they_are_for_everyone_and_for_a_phone(opened: Any, width: int) -> None:
    page = opened(width)
    for name in [*TABS, *OF_SCORE]:
        if name in TABS:
            page.open_view(name)
        else:
            page.open_grid(name, "The score")
        if name in ("Patches", "Heads", "By layer"):
            page.tab.focus("[role=application]")
            page.tab.keyboard.press("ArrowDown")
        page.suits_everyone(width)


def test_a_slider_goes_through_the_steps_of_a_training(page_of: Any, tmp_path: Path) -> None:
    model = own_models.opened("gpt")
    found = evolution([(step, model.trace("A man is fishing")) for step in (0, 10)], 1)
    others = [[1 - weight for weight in row] for row in found.weights[0]]
    found = replace(
        found,
        weights=[found.weights[0], others, found.weights[1]],
        steps=[0, 5, 10],
        entropy=[1.0] * 3,
        change=[0.0] * 3,
    )
    regard.save_page(found, tmp_path / "evolve.html")
    page = page_of(None, file=tmp_path / "evolve.html")
    page.open_grid("Step 10")
    open_twin(page.tab)
    page.tab.focus("[data-over]")
    for key, title, weights in (
        ("End", "Step 10", found.weights[2]),
        ("ArrowLeft", "Step 5", others),
        ("Home", "Step 0", found.weights[0]),
    ):
        page.tab.keyboard.press(key)
        assert page.tab.locator("h2").last.inner_text() == title
        assert [row[2] for row in rows_of(page.tab, title)][:2] == [f"{weights[0][j]:.2f}" for j in (0, 1)]
    page.tab.click("[data-play]")
    page.tab.wait_for_selector("h2:text-is('Step 10')")
    page.tab.wait_for_selector("[data-play]:has-text('play')")


def test_a_painted_picture_lies_under_the_heat_of_its_words(page_of: Any, tmp_path: Path) -> None:
    found = PromptPainting(painted(11), "tiny", "3 steps")
    regard.save_page(found, tmp_path / "paint.html")
    page = page_of(None, file=tmp_path / "paint.html")
    page.open_view("Picture")
    drawn = page.tab.evaluate(PIXELS)
    ink = 1 - 128 / 255  # grey, 28 × 20
    assert len(drawn) == 560
    assert all(abs(red - 255 * (1 - 0.65 * ink)) <= 1 for red, *_ in drawn)
    assert page.tab.locator("[role=tabpanel] .numbers").count() == 0
    page.open_view("Heat")
    frames = "all => all.map(each => getComputedStyle(each).borderColor)"
    colours = page.tab.locator("[data-grid]").evaluate_all(frames)
    assert [colours.count(each) for each in colours] == [1, 4, 4, 4, 4]  # the chosen one stands out
    page.open_grid("Heat of cat", "Heat")
    assert page.tab.locator("h2").last.inner_text() == "cat: mean of all steps"
    over = page.tab.evaluate(PIXELS)
    assert len(over) == 560
    assert any(blue > red for red, _, blue, _ in over)
    page.tab.focus("[data-over]")
    page.tab.keyboard.press("Home")
    assert page.tab.locator("h2").last.inner_text() == "cat: step 0"
    page.tab.wait_for_timeout(100)
    assert page.tab.evaluate(PIXELS) != over
