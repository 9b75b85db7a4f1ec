"""What a model wrote, step by step: weights and probabilities in the DOM are the library's, by mouse and keyboard."""

from typing import Any

import pytest
import torch

import regard
from regard.questions.generate.answer import generation
from tests.support import SHARED, own_models
from tests.web.tables import read_number

pytestmark = pytest.mark.browser

STORIES = SHARED / "models" / "stories260K"


@pytest.fixture(scope="module")
def made() -> Any:
    return own_models.opened("gpt").generate("A man is fishing", max_new_tokens=6)


def opened(page_of: Any, made: Any, **arguments: Any) -> Any:
    page = page_of(made, numbers="float32", **arguments)
    page.open_view("Generation")
    page.tab.wait_for_selector("[data-value]")
    return page


def weights(page: Any) -> dict[int, float]:
    page.tab.wait_for_timeout(300)
    table = page.tab.locator(".beside > div", has_text="looked at")
    if table.locator("button:has-text('all ')").count():
        table.locator("button:has-text('all ')").click()
    return {
        int(cell.get_attribute("data-value")): read_number(cell.inner_text())
        for cell in table.locator("[data-value]").all()
    }


def likely(page: Any) -> list[list[str]]:
    return [
        [each.strip() for each in row.locator("th, td").all_inner_texts()]
        for row in page.tab.locator("[data-likely] tbody tr").all()
    ]


def check(page: Any, trace: Any, token: int, weights_of: Any, within: float = 1e-4) -> None:
    """Check what is said of the step that wrote a token: the row before it looked, its logits chose."""
    found = weights(page)
    expected = weights_of[token - 1]
    assert sorted(found) == list(range(token))
    assert float((torch.tensor([found[n] for n in range(token)]) - expected[:token]).abs().max()) <= within
    chances = trace.logits[token - 1].double().softmax(-1)
    rows = likely(page)
    chosen = [row for row in rows if row[2] == "written"]
    assert len(chosen) == 1
    assert float(chosen[0][1]) == pytest.approx(float(chances[trace.tokens[token].id]), abs=1e-4)
    top = chances.sort(descending=True).values[: len(rows) - 1].tolist()
    shown = [float(row[1]) for row in rows]
    assert shown == sorted(shown, reverse=True)
    assert shown[: len(top)] == pytest.approx(top, abs=1e-4)


def test_every_step_by_keyboard(page_of: Any, made: Any) -> None:
    page = opened(page_of, made)
    page.choose("layer", "1")
    page.choose("head", "mean")
    trace = made.trace
    mean = trace.attention[1].dense().mean(0)
    page.tab.focus("input[type=range]")
    page.tab.keyboard.press("Home")
    for token in range(made.start, len(trace.tokens)):
        check(page, trace, token, mean)
        page.tab.keyboard.press("ArrowRight")
    assert page.tab.locator(f"[data-step='{len(trace.tokens) - made.start - 1}']").count() == 1  # and there it ends


def test_it_opens_at_the_token_that_was_least_likely(page_of: Any, made: Any) -> None:
    found = generation(made)
    page = page_of(found)
    tokens = found.plain.how.tokens
    least = min(range(len(tokens)), key=lambda n: tokens[n].probability)
    assert page.tab.locator("[data-step]").get_attribute("data-step") == str(least)
    assert page.tab.inner_text("[data-step]").endswith(": of all that it wrote the least likely")
    page.tab.focus("input[type=range]")
    page.tab.keyboard.press("ArrowLeft" if least else "ArrowRight")
    assert "least likely" not in page.tab.inner_text("[data-step]")


def test_a_translation_looks_at_its_source(page_of: Any) -> None:
    made = own_models.pair().generate(own_models.TEXTS[0], max_new_tokens=5)
    page = opened(page_of, made)
    options = page.tab.locator("[data-choose=text] option").all_inner_texts()
    page.tab.select_option("[data-choose=text]", label=next(each for each in options if "→" in each))
    page.tab.wait_for_selector("h2:has-text('source')")
    page.choose("layer", "1, cross")
    page.choose("head", "mean")
    page.tab.focus("input[type=range]")
    page.tab.keyboard.press("Home")
    page.tab.keyboard.press("ArrowRight")
    expected = made.trace.decoder.cross[1].dense().mean(0)[made.start]  # the row before token start + 1
    found = weights(page)
    assert sorted(found) == list(range(len(made.trace.encoder.tokens)))
    assert float((torch.tensor([found[n] for n in range(len(found))]) - expected).abs().max()) <= 1e-4


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, made: Any, width: int) -> None:
    page = opened(page_of, made, width=width)
    page.tab.focus("input[type=range]")
    page.tab.keyboard.press("ArrowRight")
    assert page.violations() == []
    assert page.tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.shared
@pytest.mark.skipif(not STORIES.is_dir(), reason=f"no model folder {STORIES} (REGARD_SHARED names another place)")
def test_a_story(page_of: Any) -> None:
    made = regard.load(STORIES, device="cpu").generate("Once upon a time, there was a little", max_new_tokens=5)
    page = opened(page_of, made)
    page.choose("layer", "3")
    page.choose("head", "6")
    page.tab.focus("input[type=range]")
    page.tab.keyboard.press("Home")
    check(page, made.trace, made.start, made.trace.attention[3][6])
    assert likely(page)[0][0] == made.trace.tokens[made.start].text.strip()
