"""A translation beside its source: every weight in the DOM is the library's, from both sides, by mouse and keyboard."""

import os
from pathlib import Path
from typing import Any

import pytest
import torch

import regard
from regard.explain.weights.alignment import Alignment, align, why_these_layers
from regard.explain.wording import number
from regard.text.words import wordlike
from tests.support import own_models
from tests.web.tables import rows_of

pytestmark = pytest.mark.browser

OPUS = os.environ.get("REGARD_OPUS_MT", "")
SOURCE, TARGET = own_models.TEXTS[0], own_models.TARGETS[0]


@pytest.fixture(scope="module")
def pair() -> Any:
    return own_models.pair().trace(SOURCE, target=TARGET)


def opened(page_of: Any, pair: Any, **arguments: Any) -> Any:
    page = page_of(pair, **arguments)
    page.open_view("Overview")
    page.tab.wait_for_selector("[data-weight]")
    return page


def shown(page: Any, says: str) -> dict[int, float]:
    """The numbers of the table that says this: its largest, which it opens with."""
    page.tab.wait_for_selector(f"caption:has-text('{says}')")
    return {
        int(cell.get_attribute("data-value")): float(cell.get_attribute("title"))
        for cell in page.tab.locator(f"table:has(tfoot):has(caption:has-text('{says}')) [data-value]").all()
    }


def same(found: dict[int, float], expected: Any) -> None:
    """Compare the largest numbers, in their order, with all of the library's."""
    largest = torch.as_tensor(expected).sort(descending=True).values[: len(found)].tolist()
    assert list(found.values()) == pytest.approx(largest, abs=1e-4)
    assert [float(expected[n]) for n in found] == pytest.approx(list(found.values()), abs=1e-4)
    assert len(found) == min(8, len(expected))


def readable(token: Any) -> str:
    return token.text.strip() or "␣"


def written(found: Alignment, layer: int) -> torch.Tensor:
    """What the rows that write each target token give in a layer; the first token has none."""
    return torch.tensor(found.weights[found.layers.index(layer)])[:-1]


def test_it_opens_at_what_the_library_chose_and_says_why(page_of: Any, pair: Any) -> None:
    found = align(pair)
    page = opened(page_of, pair)
    assert page.tab.input_value("[data-choose=head]") == "mean"
    assert page.tab.locator("[data-choose=layer] option:checked").inner_text() == f"{found.written_layer}, cross"
    said = page.tab.text_content("footer details")
    assert why_these_layers(found).lower() in said.lower()
    assert f"layer {found.written_layer}" in said.lower()
    assert number(found.agreement) in said
    other = next(layer for layer in found.layers if layer != found.written_layer)
    page.choose("layer", f"{other}, cross")
    page.tab.click("[data-back]")
    assert page.tab.locator("[data-choose=layer] option:checked").inner_text() == f"{found.written_layer}, cross"


def test_words_of_both_texts_show_their_weights_when_pointed_at(page_of: Any, pair: Any) -> None:
    found = align(pair)
    page = opened(page_of, pair)
    rows = written(found, found.written_layer)
    page.tab.hover("[aria-label^='target: choose'] [data-unit='3']")
    same(shown(page, "model writes it"), rows[2])
    page.tab.hover("[aria-label^='source: choose'] [data-unit='4']")
    same(shown(page, "What looks at"), torch.cat([torch.zeros(1), rows[:, 4]]))
    page.tab.check("text=read back")
    page.tab.hover("[aria-label^='target: choose'] [data-unit='3']")
    own = torch.tensor(found.weights[found.layers.index(found.written_layer)])[3]
    same(shown(page, "model reads it"), own)


def test_every_view_shows_the_row_that_wrote_a_word(page_of: Any, pair: Any) -> None:
    found = align(pair)
    page = opened(page_of, pair)
    rows = written(found, found.written_layer)
    page.tab.click("[aria-label^='target: choose'] [data-unit='3']")
    page.open_view("Numbers")
    same(shown(page, "model writes it"), rows[2])
    page.open_view("Matrix")
    page.tab.wait_for_selector("[data-state=exact]")
    page.tab.check("[value=largest]")
    query, _, weight = rows_of(page.tab, page.tab.inner_text("caption:has-text('The largest')"), exact=True)[0]
    assert float(weight) == pytest.approx(float(rows.max()), rel=1e-3)
    assert query.endswith(f"({int(rows.amax(1).argmax()) + 1})")
    page.open_view("Compare")
    page.tab.wait_for_selector("[aria-label=Difference]")  # with another layer of the same texts
    page.open_view("Steps")
    page.tab.wait_for_selector(f"h2:has-text('“{readable(pair.decoder.tokens[2])}” (token 2)')")
    page.open_view("Numbers")
    page.tab.click("[aria-label^='target: choose'] [data-unit='0']")
    page.tab.wait_for_selector("text=Nothing wrote this token")


def test_keys_alone_walk_the_texts(page_of: Any, pair: Any) -> None:
    rows = written(found := align(pair), found.written_layer)
    page = opened(page_of, pair)
    page.tab.focus("[aria-label^='target: choose'] [data-unit][tabindex='0']")
    own = [n for n, token in enumerate(pair.decoder.tokens) if not token.special]
    for key in ("Home", "ArrowRight", "ArrowRight"):
        page.tab.keyboard.press(key)
    same(shown(page, "model writes it"), rows[own[2] - 1])


def test_a_ribbon_and_its_number_are_the_largest_weights(page_of: Any, pair: Any) -> None:
    """Special tokens have none. The numbers below the target are of each word's largest weight."""
    found = align(pair)
    page = opened(page_of, pair)
    apart = {n for n, token in enumerate(pair.encoder.tokens) if token.special} | {sink.token for sink in found.sinks}
    own = [n for n, token in enumerate(pair.decoder.tokens) if n and not token.special]
    rows = written(found, found.written_layer).clone()
    rows[:, list(apart)] = 0
    assert page.tab.locator(".ribbons path").count() == sum(int((rows[n - 1] >= 0.05).sum()) for n in own)
    page.tab.click(f"[aria-label^='target: choose'] [data-unit='{own[2]}']")
    page.tab.mouse.move(0, 0)
    names = [each for each in rows[own[2] - 1].tolist() if each >= 0.05]
    assert page.tab.locator(".ribbons [data-weight]").all_text_contents() == [number(each) for each in names]


def test_the_source_of_each_word_is_listed(page_of: Any, pair: Any) -> None:
    found = align(pair)
    page = opened(page_of, pair)
    page.tab.click("[aria-label^='target: choose'] [aria-selected=true]")  # no word is chosen any more
    page.tab.click("text=/^all \\d+$/")
    rows = page.tab.locator("table:has(caption:has-text('The source of each word')) tbody tr")
    listed = [row.locator("th, td").all_inner_texts() for row in rows.all()]
    special = {n for n, token in enumerate(pair.encoder.tokens) if token.special} | {s.token for s in found.sinks}
    rows = written(found, found.written_layer).clone()
    rows[:, list(special)] = 0
    words = [n for n, token in enumerate(pair.decoder.tokens) if n and wordlike(token.text)]  # no punctuation
    for line, row in zip(listed, rows[[n - 1 for n in words]], strict=True):
        best = int(row.argmax())
        assert line[1] == readable(pair.encoder.tokens[best])
        assert line[2] == number(float(row[best]))


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, pair: Any, width: int) -> None:
    page = opened(page_of, pair, width=width)
    page.tab.hover("[aria-label^='target: choose'] [data-unit='3']")
    shown(page, "model writes it")
    page.suits_everyone(width)


@pytest.mark.real
@pytest.mark.skipif(not Path(OPUS, "model.safetensors").is_file(), reason=f"no model in REGARD_OPUS_MT={OPUS!r}")
def test_a_real_translation_by_whole_words(page_of: Any) -> None:
    model = regard.load(OPUS, device="cpu")
    made = model.generate("The man sat on the river bank and ate a sandwich.")
    pair = made.trace
    found = align(pair)
    page = opened(page_of, made)
    page.tab.check("text=whole words")
    name = "target: choose"
    labels = page.tab.locator(f"[aria-label^='{name}'] [data-unit]")
    at = labels.all_inner_texts().index("rive")
    labels.nth(at).hover()
    word, bank = pair.decoder.word("rive")[0], pair.encoder.word("bank")[0]
    rows = written(found, found.written_layer)[[token - 1 for token in word.tokens]].mean(0)
    numbers = shown(page, "What “rive” looks at")
    assert float(page.tab.get_attribute("tfoot td:nth-child(3)", "title")) == pytest.approx(float(rows.sum()), abs=1e-4)
    sources = page.tab.locator("[aria-label^='source: choose'] [data-unit]").all_inner_texts()
    assert numbers[sources.index("bank")] == pytest.approx(float(rows[list(bank.tokens)].sum()), abs=1e-3)
    assert "bank" in [sources[n] for n in list(numbers)[:3] if n < len(sources)]  # what a person would say as well
