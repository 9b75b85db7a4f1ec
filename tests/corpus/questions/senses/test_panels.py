"""The page of a word's senses, held against what the store answered."""

import zlib
from typing import Any

import numpy as np
import pytest

from regard.corpus.questions.senses import answer
from regard.corpus.questions.senses.answer import Senses
from regard.corpus.questions.senses.panels import example_numbers, senses_sentences
from regard.display.terminal_parts import plain_lines_of_parts
from regard.errors import RegardError
from regard.server.corpora import senses_page
from regard.web.html_file import script_json
from regard.web.page import Page
from tests.support.web_pages import from_byte_planes


def joined(context: Any) -> str:
    return f"{context['left']}|{context['form']}|{context['right']}"


def served(found: Senses) -> Page:
    return senses_page(found.found.tables, found).page  # type: ignore[arg-type]  # opened as a Store


def test_every_occurrence_is_a_point_with_its_sense_and_sentence(bank_store: Any) -> None:
    found = bank_store.senses("bank", checked=2, words=2)
    page: Any = found.page().data()
    assert page["title"] == "“bank”: 16 occurrences, 2 senses"
    assert page["findings"] == senses_sentences(found)
    assert page["opening"]["view"] == "panel 0"
    cloud, table, words, examples = page["panels"]
    assert [panel["name"] for panel in page["panels"]] == ["Occurrences", "Senses", "Marker words", "Examples"]
    order = found.order()
    np.testing.assert_allclose([(p["x"], p["y"]) for p in cloud["points"]], found.points[order], atol=1e-6)
    rows = found.rows()
    assert [p["group"] for p in cloud["points"]] == [f"sense {row['sense']}" for row in rows]
    assert [p["label"] for p in cloud["points"]] == [row["document"] for row in rows]
    texts = [f"{row['left']}|{row['form']}|{row['right']}" for row in rows]
    assert [joined(p["context"]) for p in cloud["points"]] == texts  # all shorter than 60 characters on either side
    assert cloud["x"] == f"axis 1 ({found.axes[0]:.0%} of the variance)"
    assert [row[1] for row in table["rows"]] == found.clusters.sizes()
    marked = [", ".join(word.word for word in sense.words) or "none" for sense in found.senses]
    assert [row[-1] for row in table["rows"]] == marked
    told = [word for sense in found.senses for word in sense.words]
    assert [row[0] for row in words["rows"]] == [word.word for word in told]
    assert [row[5:8] for row in words["rows"]] == [[w.checked, w.changed, w.random_changed] for w in told]
    assert [row[2] for row in examples["rows"]] == [line.document for sense in found.senses for line in sense.examples]
    script_json(page)


def numbers_of(page: Any, numbers: Any) -> np.ndarray:
    return from_byte_planes(zlib.decompress(page.numbers.blobs[numbers["at"]]), numbers["dtype"], numbers["shape"])


def test_a_served_page_has_the_same_points_as_numbers_and_the_same_tables(bank_store: Any) -> None:
    found: Senses = bank_store.senses("bank", checked=2, words=2)
    whole, page = found.page(), served(found)
    assert (page.title, page.findings, page.status) == (whole.title, whole.findings, whole.status)
    [cloud, *tables], [scatter, *same] = page.panels, whole.panels
    assert [{**table, "places": None} for table in tables] == [{**table, "places": None} for table in same]
    points: Any = scatter["points"]
    np.testing.assert_allclose(numbers_of(page, cloud["points"]), [(p["x"], p["y"]) for p in points], atol=1e-6)
    groups = [cloud["groups"][n] for n in numbers_of(page, cloud["of"])]  # type: ignore[index]
    assert groups == [point["group"] for point in points]
    for name in ("name", "title", "note", "x", "y", "called"):
        assert cloud[name] == scatter[name]
    assert cloud["most"] == 20_000
    examples = [line for sense in found.senses for line in sense.examples]
    shown = found.found.take(example_numbers(found))
    assert list(zip(shown.shard, shown.row.tolist(), strict=True)) == [(line.shard, line.row) for line in examples]


def test_labels_are_the_names_and_one_sense_has_no_words(bank_store: Any) -> None:
    page: Any = bank_store.senses("bank", 1).page().data()
    assert [panel["name"] for panel in page["panels"]] == ["Occurrences", "Senses", "Examples"]
    assert {point["group"] for point in page["panels"][0]["points"]} == {"sense 1"}
    assert page["title"] == "“bank”: 16 occurrences, 1 sense"


def test_what_no_browser_would_draw_is_refused(bank_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bank_store.senses("bank", 1)
    monkeypatch.setattr(answer, "LONGEST", 500)
    with pytest.raises(RegardError, match=r"fewer characters on either side than 60 \(context\)"):
        found.page()
    monkeypatch.setattr(answer, "MOST", 15)
    assert served(found).panels[0]["kind"] == "cloud"
    with pytest.raises(RegardError, match="'bank' has 16 occurrences, a page shows at most 15"):
        found.page()


def test_what_could_not_be_told_apart_is_said_to_be_so_in_title_sentence_cloud_and_tables(cloud_store: Any) -> None:
    found = cloud_store.senses("bank")
    for page in (found.page(), served(found)):
        data: Any = page.data()
        assert data["title"] == "“bank”: 30 occurrences, senses not separated"
        assert data["findings"] == senses_sentences(found)
        assert "sense 1" not in str(data).lower()
        assert "1 sense" not in str(data).lower()
        assert data["panels"][1]["rows"][0][0] == "not separated"
    drawn: Any = found.page().data()["panels"][0]
    assert {point["group"] for point in drawn["points"]} == {"not separated"}


def test_a_terminal_has_the_senses_their_words_and_examples(bank_store: Any, cloud_store: Any) -> None:
    found = bank_store.senses("bank", checked=2, words=1, examples=1)
    said = "\n".join(plain_lines_of_parts(found.shown(80), 80))
    assert "“bank”: 16 occurrences, 2 senses" in said
    for sense in found.senses:
        assert all(word.word in said for word in sense.words)
        assert sense.examples[0].document in said
    [line] = found.exactness()
    assert f"{found.clusters.silhouettes[2]:.2f}" in line
    assert f"{found.clusters.separations[2]:.2f}" in line
    assert max(map(len, said.splitlines())) <= 80
    said = "\n".join(plain_lines_of_parts(cloud_store.senses("bank").shown(200), 200))
    assert "30 occurrences, senses not separated" in said
    assert "sense 1" not in said


def test_every_occurrence_is_drawn_in_its_sense(bank_store: Any, cloud_store: Any) -> None:
    found = bank_store.senses("bank", checked=0)
    axes = found.plot().axes[0]
    order = found.order()
    for number, line in enumerate(axes.lines):
        own = found.points[order[found.clusters.labels[order] == number]]
        np.testing.assert_allclose(line.get_xydata(), own, atol=1e-6)
    assert [text.get_text() for text in axes.texts] == ["sense 1", "sense 2"]
    axes = cloud_store.senses("bank").plot().axes
    assert [text.get_text() for text in axes[0].texts] == ["not separated"]
    assert len(axes) == 1


def test_json_has_each_sense_and_each_point(bank_store: Any, cloud_store: Any) -> None:
    found = bank_store.senses("bank", checked=0)
    data: Any = found.to_json()
    assert [each["occurrences"] for each in data["senses"]] == found.clusters.sizes()
    assert (data["format"], len(data["points"])) == ("regard senses", 16)
    found = cloud_store.senses("bank")
    data = found.to_json()
    assert (data["told_apart"], data["findings"]) == (False, senses_sentences(found))
    assert {each["sense"] for each in [*data["points"], *found.rows()]} == {"not separated"}
    assert bank_store.senses("bank", 1).to_json()["told_apart"] is True
