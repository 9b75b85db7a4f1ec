"""The pages of a word's senses and of a corpus' heads in a browser: every number against the library's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import regard
from regard.corpus.embed_texts import embed
from regard.corpus.questions.senses.answer import Senses
from regard.corpus.questions.senses.panels import senses_sentences, senses_title
from regard.corpus.store import Store
from regard.display.panels import decimals
from regard.display.sentences import number_text
from tests.questions.test_heads import answer_of, mean_scores_of
from tests.web.tables import open_twin, rows_of

pytestmark = pytest.mark.browser
NASTY = "<b>bold</b> </script> \x1b[31m The שלום left bank of the river.\nIt rose."


def written(x: float, y: float) -> list[str]:
    return [number_text(x, 3), number_text(y, 3)]


@pytest.fixture(scope="module")
def found(bank_folder: Path, minilm: Any) -> Senses:
    """Two senses, their words cut from some occurrences."""
    with Store(bank_folder) as store:
        vars(store)["model"] = minilm
        return store.senses("bank", checked=2, words=3, examples=4)


@pytest.fixture
def senses(page_of: Any, found: Senses, tmp_path: Path) -> Any:
    """The page of those senses. width: of the window."""

    def make(width: int = 1000) -> Any:
        regard.save_page(found, tmp_path / "senses.html")
        return page_of(None, file=tmp_path / "senses.html", width=width)

    return make


def places(tab: Any) -> np.ndarray:
    """Where each mark lies, in pixels from the plot's lower left."""
    read = tab.evaluate(
        "[...document.querySelectorAll('[data-point]')].map(each => each.getAttribute('transform')"
        ".match(/translate\\(([-\\d.e]+) ([-\\d.e]+)\\)/).slice(1).map(Number))"
    )
    return np.array(read) * [1, -1]


def test_every_occurrence_lies_where_its_axes_say_and_says_its_sentence(senses: Any, found: Senses) -> None:
    page = senses()
    assert page.tab.locator(".findings :is(h1, li:not(:has(.fold)))").all_inner_texts() == [
        text.replace("“", "“\u2068").replace("”", "\u2069”") for text in senses_sentences(found)
    ]
    order = found.order()
    marks, points = places(page.tab), found.points[order]
    (across, _), (up, _) = (np.polyfit(points[:, n], marks[:, n], 1) for n in (0, 1))
    np.testing.assert_allclose(across, up, rtol=1e-3)  # one scale: a distance is a distance
    np.testing.assert_allclose(marks - marks.mean(0), across * (points - points.mean(0)), atol=0.05)
    drawn = page.tab.evaluate(
        "[...document.querySelectorAll('[data-point]')].map(each => each.getAttribute('d') + each.getAttribute('fill'))"
    )
    labels = found.clusters.labels[order].tolist()
    assert len(set(zip(drawn, labels, strict=True))) == len(set(drawn)) == 2
    assert page.tab.locator("[data-label]").all_text_contents() == ["sense 1", "sense 2"]
    page.tab.focus("[role=application]")
    axes = [f"axis {n + 1} ({share:.0%} of the variance)" for n, share in enumerate(found.axes)]
    first = [labels.index(n) for n in (0, 1)]
    for key, n in (("PageDown", first[0]), ("PageDown", first[1]), ("ArrowRight", first[1] + 1), ("PageUp", 0)):
        page.tab.keyboard.press(key)
        row, (x, y) = found.rows()[n], found.points[order[n]]
        said = " ".join(page.tab.inner_text("[data-says]").split())
        assert said == (
            f"{row['left']}{row['form']}{row['right']} {row['document']} (sense {row['sense']}): "
            f"{axes[0]} {number_text(x, 3)}, {axes[1]} {number_text(y, 3)}"
        )
        assert page.tab.inner_text("[data-says] mark") == "bank"


def test_the_tables_have_every_number(senses: Any, found: Senses) -> None:
    page = senses()
    open_twin(page.tab)
    rows = rows_of(page.tab, f"Occurrences of “bank”, layer {found.layer}")
    assert rows == [
        [
            row["document"],
            f"sense {row['sense']}",
            f"{row['left']}{row['form']}{row['right']}",
            number_text(x, 3),
            number_text(y, 3),
        ]
        for row, (x, y) in zip(found.rows(), found.points[found.order()], strict=True)
    ]
    page.tab.click("th >> button:has-text('sentence')")
    sentences = [row[2] for row in rows_of(page.tab, f"Occurrences of “bank”, layer {found.layer}")]
    assert sentences == sorted(sentences, key=str.casefold)
    page.open_view("Senses")
    assert rows_of(page.tab, f"Senses of {senses_title(found)}, layer {found.layer}") == [
        [
            f"sense {each.name}",
            f"{each.occurrences}",
            f"{each.share:.2f}",
            f"{each.distance:.{decimals([each.distance for each in found.senses])}f}",
            ", ".join(word.word for word in each.words) or "none",
        ]
        for each in found.senses
    ]
    page.open_view("Marker words")
    told = [(sense, word) for sense in found.senses for word in sense.words]
    assert any(word.checked for _, word in told)
    moves = [(word.moved, word.random_moved) for _, word in told]
    assert rows_of(page.tab, "Marker words") == [
        f"{word.word}|sense {sense.name}|{word.near}|{word.near_others}|{word.score:.2f}|{word.checked}".split("|")
        + ["–" if v is None else f"{v:.2f}" for v in (word.changed, word.random_changed)]
        + [
            "–" if v is None else f"{v:.{decimals(moved)}f}"
            for v, moved in zip((word.moved, word.random_moved), zip(*moves, strict=True), strict=True)
        ]
        for sense, word in told
    ]
    page.open_view("Examples")
    assert rows_of(page.tab, "Examples of each sense") == [
        [f"sense {sense.name}", f"{line.left}{line.form}{line.right}", line.document]
        for sense in found.senses
        for line in sense.examples
    ]


def test_what_stands_in_a_text_is_text(page_of: Any, minilm: Any, tmp_path: Path) -> None:
    (tmp_path / "<i>a.txt").write_text(NASTY, "utf-8")
    embed(tmp_path / "<i>a.txt", tmp_path / "store", model=minilm)
    with Store(tmp_path / "store") as store:
        regard.save_page(store.senses("bank"), tmp_path / "a.html")
    page = page_of(None, file=tmp_path / "a.html")
    assert page.tab.locator("[data-point]").count() == 1
    page.tab.focus("[role=application]")
    page.tab.keyboard.press("Home")
    assert "<b>bold</b> </script>" in page.tab.inner_text("[data-says]")
    assert page.tab.locator("main :is(b, i)").count() == 0


def test_every_head_has_its_scores_in_a_grid_and_in_the_table(page_of: Any, tmp_path: Path) -> None:
    found = mean_scores_of()
    regard.save_page(answer_of(found), tmp_path / "heads.html")
    page = page_of(None, file=tmp_path / "heads.html")
    for name, values in found.scores.items():
        page.open_grid(name)
        title = page.tab.inner_text("[role=tabpanel] h2")
        page.tab.focus("[role=application]")
        for key in ("ArrowDown", "ArrowDown", "End"):
            page.tab.keyboard.press(key)
        row = values[1]
        unit = {"entropy": "nats ", "distance": "tokens "}.get(name, "share ")
        number = "no number" if np.isnan(row[1]) else f"{unit}{row[1]:.2f}"
        assert page.tab.inner_text("[data-says]") == f"layer 1 · head 1: {number}"
        open_twin(page.tab)
        assert [each[2] for each in rows_of(page.tab, title)] == [
            "–" if np.isnan(value) else f"{value:.2f}" for value in values.ravel()
        ]
    page.tab.focus("[role=application]")
    for key in ("Home", "Enter"):
        page.tab.keyboard.press(key)
    shown = page.tab.inner_text("[data-says]").split(":")[0].replace(" · ", ", ")
    row, head = (int(each.split()[1]) for each in shown.split(", "))
    told = [
        f"{name} {number_text(values[row, head], 2)}".replace("–", "no number") for name, values in found.scores.items()
    ]
    for grid in ("previous", "next"):  # the head stays chosen in all
        page.open_grid(grid)
        assert page.tab.inner_text("[data-told]").startswith(f"{shown}: {', '.join(told)}.")
    page.open_view("All heads")
    rows = rows_of(page.tab, "Scores of every head")
    expected = [[f"{value:.2f}".replace("nan", "–") for value in each.ravel()] for each in found.scores.values()]
    assert [row[1:] for row in rows] == [list(each) for each in zip(*expected, strict=True)]


@pytest.mark.parametrize("width", [390, 1000])
def test_both_pages_are_for_everyone_and_for_a_phone(senses: Any, page_of: Any, tmp_path: Path, width: int) -> None:
    page = senses(width)
    for name in ("Occurrences", "Senses", "Marker words", "Examples"):
        page.open_view(name)
        if name == "Occurrences":
            page.tab.focus("[role=application]")
            page.tab.keyboard.press("PageDown")
            open_twin(page.tab)
        page.suits_everyone(width)
    regard.save_page(answer_of(mean_scores_of()), tmp_path / "heads.html")
    page = page_of(None, file=tmp_path / "heads.html", width=width)
    for name in ("Overview", "Heat maps", "All heads"):
        page.open_view(name)
        page.suits_everyone(width)
