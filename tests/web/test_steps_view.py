"""One token through one head: every number of the diagram and its table is the library's, by mouse and by keyboard."""

from copy import copy
from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention.attention_map import AttentionMap
from regard.explain.weights.head_steps import HeadSteps, head_steps
from regard.web.numbers import NumberStore
from tests.support import generation
from tests.web.tables import read_number

pytestmark = pytest.mark.browser

RIVER, BANK = 10, 11  # tokens of the first of the two bank sentences


def opened(page_of: Any, trace: Any, layer: int, head: int | str, token: int, **arguments: Any) -> Any:
    """The view of one token's way, reached as a hand would."""
    page = page_of(trace, **arguments)
    page.open_view("Steps")
    page.choose_head(str(layer), str(head))
    page.tab.click(f"[data-unit='{token}']")
    return page


def table(page: Any) -> dict[str, Tensor]:
    """The table of scores, all rows, by the names of its columns."""
    page.tab.wait_for_selector("[data-step=weights]")
    if page.tab.locator("details[open] table").count() == 0:
        page.tab.click("summary:has-text('The numbers as a table')")
        page.tab.wait_for_selector("details[open] tbody tr")  # it is filled once it is open
    more = page.tab.locator("details button:has-text('all ')")
    if more.count():
        more.click()
    names = page.tab.locator("details thead th").all_inner_texts()
    rows = page.tab.locator("details tbody tr")
    cells = [[*row.locator("th, td").all_inner_texts()] for row in rows.all()]
    assert [int(row[1]) for row in cells] == list(range(len(cells)))
    return {
        name.strip(): torch.tensor([read_number(row[at]) for row in cells]).double()
        for at, name in enumerate(names)
        if name != "token"
    }


def same(page: Any, found: HeadSteps, within: float = 2e-4) -> None:
    """Compare a table with the library's steps; the columns that a rule has no use for are not there."""
    shown = table(page)
    expected = {"q · k": found.products, "scaled": found.scaled, "masked": found.scores}
    expected |= {"exp": found.exponentials, "weight": found.weights}
    if found.softcap is not None:
        expected["capped"] = found.capped
    if bool((found.bias != 0).any()):
        expected["+ bias"] = found.capped + found.bias
    assert set(shown) == {*expected, "number"}
    for name, numbers in expected.items():
        assert torch.equal(shown[name].isinf(), numbers.isinf()), name
        finite = numbers.isfinite()
        assert float((shown[name] - numbers)[finite].abs().max()) <= within, name


def as_stored(trace: Any) -> Any:
    """The trace with queries and keys as the page stores them, in int16 with a scale per vector."""
    stored, round_vectors = copy(trace), NumberStore().add_vectors
    stored.attention = tuple(
        AttentionMap(*(round_vectors(x[0])[1][None] for x in (m.query, m.key)), m.rule, offset=m.offset, ndim=3)
        for m in trace.attention
    )
    return stored


def said(page: Any, step: str) -> tuple[str, float]:
    """What is said of the number that is pointed at, and the number."""
    line = page.tab.wait_for_selector(f"[data-origin={step}]")
    number = line.get_attribute("data-number")
    assert number in line.inner_text()
    return line.inner_text(), read_number(number)


def at_end(page: Any, step: str) -> float:
    """Reach the last component of a strip's first row by keyboard; returns its number."""
    page.tab.focus(f"[data-step={step}] [role=application]")
    page.tab.keyboard.press("End")
    return said(page, step)[1]


def test_scores_and_weights_are_the_librarys(page_of: Any, bank: Any) -> None:
    page, stored = opened(page_of, bank[0], 3, 5, BANK), as_stored(bank[0])
    same(page, head_steps(stored, BANK, 3, 5))
    page.choose_head("0", "2")
    page.tab.wait_for_selector("text=through layer 0, head 2")
    same(page, head_steps(stored, BANK, 0, 2))


def test_a_score_says_which_strips_it_is_made_of(page_of: Any, bank: Any) -> None:
    page = opened(page_of, bank[0], 3, 5, BANK)
    found = head_steps(bank[0], BANK, 3, 5)
    page.tab.hover(f"[data-step=scaled] [data-row='{RIVER}']")
    sentence, number = said(page, "scaled")
    assert sentence.startswith("score of “river” = q · k × 1/√32 = ")
    assert number == pytest.approx(float(found.scaled[RIVER]), abs=2e-3)
    frames = {name: page.tab.locator(f"[data-step={name}] .frame:not(.here)") for name in ("query", "keys", "products")}
    assert [each.count() for each in frames.values()] == [1, 1, 1]
    box = page.tab.locator("[data-step=keys] [role=application]").bounding_box()
    frame = frames["keys"].bounding_box()
    assert frame["width"] == pytest.approx(box["width"], abs=2)  # the whole key of “river”, no other row
    assert round((frame["y"] - box["y"]) / frame["height"]) == RIVER
    assert page.tab.locator("[data-step=values] .frame").count() == 0


def test_strips_hold_the_librarys_vectors(page_of: Any, bank: Any) -> None:
    page = opened(page_of, bank[0], 3, 5, BANK, steps=[3])
    found, output = head_steps(bank[0], BANK, 3, 5), bank[0].attention_outputs[3]
    joined = torch.einsum("hs,hse->he", bank[0].attention[3][:, BANK], bank[0].values[3]).flatten()
    projected, residual = output.weight @ joined + output.bias, output.residual[BANK]
    total, norm = residual + projected, output.norm
    normed = torch.nn.functional.layer_norm(total, total.shape, norm.weight, norm.bias, norm.eps)
    rows = {"entering": bank[0].hidden_states[3], "keys": found.key, "values": found.value, "weighted": found.weighted}
    strips = {"query": found.query, "context": found.context, "joined": joined, "projected": projected}
    strips |= {"residual": residual, "total": total, "normed": normed}
    for name, vectors in rows.items():
        assert at_end(page, name) == pytest.approx(float(vectors[0, -1]), abs=2e-3), name
        page.tab.keyboard.press("ArrowDown")
        page.tab.keyboard.press("ArrowLeft")
        assert said(page, name)[1] == pytest.approx(float(vectors[1, -2]), abs=2e-3), name
    for name, vector in strips.items():
        assert at_end(page, name) == pytest.approx(float(vector[-1]), abs=2e-3), name
        page.tab.keyboard.press("PageUp")
        back = len(vector) - 1 - max(1, round(len(vector) / 16))
        assert said(page, name)[1] == pytest.approx(float(vector[back]), abs=2e-3), name
    assert page.tab.locator("[data-missing]").count() == 0


def test_keys_alone_reach_every_strip(page_of: Any, bank: Any) -> None:
    page = opened(page_of, bank[0], 3, 5, BANK, steps=[3])
    page.tab.wait_for_selector("[data-step=normed]")
    page.tab.focus("[data-unit][tabindex='0']")
    page.tab.keyboard.press("ArrowLeft")
    page.tab.wait_for_selector(f"text=(token {RIVER}) through layer 3")
    reached = []
    for _ in range(15):
        page.tab.keyboard.press("Tab")
        reached.append(page.tab.evaluate("document.activeElement.closest('[data-step]')?.dataset.step ?? ''"))
    assert reached == [
        *["entering", "query", "keys", "products", "scaled", "exponentials", "weights", "values", "weighted"],
        *["context", "joined", "projected", "residual", "total", "normed"],
    ]


@pytest.mark.parametrize("kind", ["gemma2", "gpt_oss"])
def test_softcap_mask_and_sinks(page_of: Any, kind: str) -> None:
    trace = generation.opened(kind).trace(ids=generation.IDS)
    found = head_steps(as_stored(trace), 5, 0, 4)
    assert (found.softcap if kind == "gemma2" else found.sink) is not None
    assert bool(found.scores.isinf().any())
    page = opened(page_of, trace, 0, 4, 5, steps=True)
    same(page, found)
    page.tab.focus("[data-step=weights] [role=application]")
    sentence, number = said(page, "weights")
    assert number == pytest.approx(float(found.weights[0]), rel=1e-3, abs=1e-6)
    assert ("the sink’s" in sentence) == (kind == "gpt_oss")
    if kind == "gemma2":  # a norm of its own behind W_O, of each token's length
        assert "aren't shown: the model rescales" in page.tab.inner_text("[data-missing]")
        assert page.tab.locator("[data-step=joined]").count() == 1


@pytest.mark.parametrize("width", [390, 1000])
def test_it_is_for_everyone_and_for_a_phone(page_of: Any, bank: Any, width: int) -> None:
    page = opened(page_of, bank[0], 3, 5, BANK, steps=[3], width=width)
    table(page)
    page.tab.focus("[data-step=scaled] [role=application]")
    page.suits_everyone(width)
