"""What a model wrote: every number of the first view is the library's, by mouse and keyboard; in a browser."""

import json
from dataclasses import replace
from typing import Any

import pytest
import torch

import regard
from regard.explain.logits import logit_lens
from regard.explain.weights.specific_weights import divergence_maps
from regard.explain.wording import fixed, number
from regard.questions.generate.answer import Generation, generated, notable_token
from tests.support import SHARED, own_models
from tests.web.conftest import FULL
from tests.web.test_page import fields

pytestmark = pytest.mark.browser
STORIES = SHARED / "models" / "stories260K"
CHOSEN = "document.querySelector('[data-token][aria-selected=true]').dataset.token"


@pytest.fixture(scope="module")
def model() -> Any:
    return own_models.opened("llama")


@pytest.fixture(scope="module")
def found(model: Any) -> Generation:
    return generated(model.generate("A man is fishing", max_new_tokens=6))


def check(page: Any, found: Generation, token: int) -> None:
    """Compare what is shown of a written token: alternatives, links that stand out, heads."""
    trace, layers = found.traces[0].trace, len(found.traces[0].trace.attention)
    chances = trace.logits[token - 1].double().softmax(-1)
    own = float(chances[trace.tokens[token].id])
    shown = page.tab.locator("[data-likely] b").all_inner_texts()
    best = [own, *(each for each in chances.sort(descending=True).values[:5].tolist() if each != own)][:5]
    assert shown == [fixed(each, 2) for each in sorted(best, reverse=True)]
    rows = torch.stack([trace.attention[n][:, token - 1] for n in range(layers)])
    told = {number(float(weight)) for weight in rows.flatten()}
    assert set(page.tab.locator("[data-weight]").all_text_contents()) <= told
    apart = [n for n, each in enumerate(trace.tokens) if each.special or n in found.plain.how.sink_tokens]
    maps = divergence_maps(trace.tokens, trace.attention, apart, range(layers), range(rows.shape[1]))
    for layer, weights, divergence in maps:
        for head, most in enumerate(divergence[:, token - 1].max(-1).values.tolist()):
            said = page.tab.get_attribute(f"[data-head='0-{layer}-{head}']", "title")
            key = int(divergence[head, token - 1].argmax())
            usual = "no unusual link"
            assert said.endswith(f" {number(float(weights[head, token - 1, key]))}" if most >= 0.0005 else usual)


def test_every_number_is_the_library_s(first_view: Any, found: Generation, model: Any) -> None:
    page = first_view(found)
    assert set(found.page().overview) == fields("OfWriting")
    trace, start = found.traces[0].trace, found.traces[0].start
    page.tab.keyboard.press("ArrowRight")
    for _ in range(start, len(trace.tokens)):
        check(page, found, int(page.tab.evaluate(CHOSEN)))
        page.tab.keyboard.press("ArrowRight")
        page.tab.wait_for_timeout(60)
    for token in range(start, len(trace.tokens)):
        page.tab.click(f"[data-token='{token}']")
        for layer in logit_lens(model, trace, token - 1, 3).layers:
            cell = page.tab.locator(f"[data-lens='{token - start}-{layer.state}']")
            said, told = cell.get_attribute("title"), [number(each.probability) for each in layer.candidates]
            assert all(f" {each}" in said for each in [f"{cell.inner_text()} {told[0]}", *told])
            assert ("is number" not in said) == (layer.rank == 1)  # written is the likeliest


def test_the_first_sentence_is_true_of_the_lens(first_view: Any) -> None:
    if not STORIES.is_dir():
        pytest.skip(f"no model folder {STORIES} (REGARD_SHARED names another place)")
    model = regard.load(STORIES, device="cpu")
    written = model.generate("Once upon a time", max_new_tokens=14)
    found = generated(written)
    first = notable_token(found.plain)
    assert f"“{first.text}” (probability {number(first.probability)}). Only the last of 5 layers" in found.findings()[0]
    ranks = [layer.rank for layer in logit_lens(model, written.trace, first.token - 1).layers]
    assert [rank == 1 for rank in ranks] == [False] * 5 + [True]
    page = first_view(written)  # as the text itself has it
    assert found.findings()[0] in page.tab.inner_text("h1").replace("\u2068", "").replace("\u2069", "")
    assert page.tab.evaluate(CHOSEN) == str(first.token)
    blue = [page.tab.get_attribute(f"[data-lens='{first.token - written.start}-{n}'] span", "style") for n in range(6)]
    assert ["font-weight" in style for style in blue] == [rank == 1 for rank in ranks]


def test_keys_pointer_and_address(first_view: Any, found: Generation) -> None:
    page = first_view(found)
    tab, start = page.tab, found.traces[0].start
    tab.click(f"[data-token='{start + 2}']")
    tab.click("[data-token='1']", force=True)  # of the prompt: nothing wrote it
    assert tab.evaluate(CHOSEN) == str(start + 2)
    tab.keyboard.press("ArrowUp")
    assert tab.inner_text("[data-caption] b").startswith("layer 0, mean of")
    tab.hover("[data-head='0-1-2']")
    assert tab.inner_text("[data-caption] b") == "layer 1, head 2"
    tab.mouse.move(2, 2)
    tab.focus(f"[data-lens='2-{len(found.traces[0].trace.attention)}']")
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.dataset.lens") == f"3-{len(found.traces[0].trace.attention) - 1}"
    tab.keyboard.press("Enter")
    tab.click("[data-head='0-0-1']")
    said = json.loads(tab.evaluate("decodeURIComponent(location.hash.slice(1))"))
    assert (said["token"], said["head"], said["choices"]["overview"]) == (start + 3, 1, "chosen")
    tab.reload()
    tab.wait_for_selector(FULL)
    assert (tab.evaluate(CHOSEN), tab.inner_text("[data-caption] b")) == (str(start + 3), "layer 0, head 1")
    tab.keyboard.press("Escape")
    assert tab.inner_text("[data-caption] b") != "layer 0, head 1"


def test_it_writes_again(first_view: Any, found: Generation) -> None:
    page = first_view(found, motion=True)
    seen = "getComputedStyle(each).visibility == 'visible'"
    hidden = f"[...document.querySelectorAll('[data-token]')].filter(each => !({seen})).length"
    token = page.tab.evaluate(CHOSEN)
    page.tab.click("text=Write it")
    page.tab.wait_for_timeout(100)
    first = page.tab.evaluate(hidden)
    assert first == len(found.plain.how.tokens) - 1
    page.tab.wait_for_timeout(1000)
    assert 0 < page.tab.evaluate(hidden) < first
    page.tab.wait_for_selector("text=Write it", timeout=9000)
    assert (page.tab.evaluate(hidden), page.tab.evaluate(CHOSEN)) == (0, token)
    page.tab.click("text=Write it")
    page.tab.click("h1 [data-told=word]")  # any choice ends it
    page.tab.wait_for_selector("text=Write it", timeout=500)
    page.tab.emulate_media(reduced_motion="reduce")
    assert not page.tab.is_visible("text=Write it")


def test_plain_and_steered_text(first_view: Any, model: Any) -> None:
    push = regard.steer(9 * model.trace("She takes").last_hidden_state[0], layer=1)
    both = [model.generate("A man is", max_new_tokens=5, interventions=each) for each in ([], [push])]
    found = generated(both[0], both[1], "how")
    page = first_view(found)
    for n, name in ((1, "plain"), (0, "steered")):
        assert page.tab.inner_text(".stage > h2") == name
        page.tab.click(f"[data-text='{n}']")
        page.tab.wait_for_timeout(100)
    steps = page.tab.locator("[data-likely] b").all_inner_texts()
    shown = fixed(found.plain.how.tokens[found.first_difference or 0].probability, 2)
    assert shown in steps or any(each.startswith(shown[:4]) for each in steps)


@pytest.mark.parametrize("width", [390, 1300])
def test_it_is_for_everyone_and_for_a_phone(first_view: Any, found: Generation, width: int) -> None:
    page = first_view(found, width=width)
    page.tab.keyboard.press("ArrowRight")
    page.suits_everyone(width)
    assert page.tab.locator("[data-token][tabindex='0']").count() == 1
    assert page.tab.locator("[data-lens][tabindex='0']").count() == 1
    page.suits_paper()


def test_a_long_text_scrolls_and_the_lens_can_be_unknown(first_view: Any, model: Any) -> None:
    long = model.generate("A man is fishing on a river bank " * 3, max_new_tokens=70)
    page = first_view(generated(long))
    assert "the first 64 written tokens" in page.tab.inner_text("[data-lens-caption]")
    chosen = int(page.tab.evaluate(CHOSEN)) - long.start
    others = page.tab.locator(f"[data-lens]:not([data-lens^='{chosen}-'])")
    assert set(others.all_inner_texts()) == {""}  # words are in the chosen column alone
    assert page.tab.locator("[data-token]").count() == len(long.trace.tokens)
    seen, whole = (page.tab.evaluate(f"document.querySelector('.text').{name}Height") for name in ("client", "scroll"))
    assert seen <= 292 < whole
    page = first_view(generated(replace(long, model=None)))
    assert page.tab.locator("[data-lens]").count() == 0
    assert page.tab.locator("[data-likely]").count() == 5
    assert page.violations() == []
