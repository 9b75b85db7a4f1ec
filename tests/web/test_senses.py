"""The page of a word's senses, held against what the store answered."""

import zlib
from typing import Any

import numpy as np
import pytest

from regard.corpus.asking.sense_sentences import ablation_sentence, sense_sentences
from regard.corpus.asking.senses import Senses
from regard.errors import RegardError
from regard.web import senses
from regard.web.html_file import script_json
from regard.web.numbers import from_byte_planes
from regard.web.senses import MOST, contexts_of, example_numbers, senses_page, served_senses_page


def joined(context: Any) -> str:
    return f"{context['left']}|{context['form']}|{context['right']}"


def test_every_occurrence_is_a_point_with_its_sense_and_sentence(bank_store: Any) -> None:
    found = bank_store.senses("bank", checked=2, words=2)
    page: Any = senses_page(found).data()
    assert page["title"] == "“bank”: 16 occurrences, 2 senses"
    assert page["findings"] == [*sense_sentences(found), *found.notes]
    assert page["opening"]["view"] == "panel 0"
    cloud, table, words, examples = page["panels"]
    assert [panel["name"] for panel in page["panels"]] == ["Occurrences", "Senses", "Words near it", "Examples"]
    order = found.order()
    np.testing.assert_allclose([(p["x"], p["y"]) for p in cloud["points"]], found.points[order], atol=1e-6)
    rows = found.rows()
    assert [p["group"] for p in cloud["points"]] == [f"sense {row['sense']}" for row in rows]
    assert [p["label"] for p in cloud["points"]] == [row["document"] for row in rows]
    texts = [f"{row['left']}|{row['form']}|{row['right']}" for row in rows]
    assert [joined(p["context"]) for p in cloud["points"]] == texts  # all shorter than 60 characters on either side
    assert cloud["equal"] is True
    assert cloud["x"] == f"axis 1 ({found.axes[0]:.0%} of the variance)"
    assert [row[2] for row in table["rows"]] == found.clusters.sizes()
    assert [row[1] for row in table["rows"]] == [ablation_sentence(sense) for sense in found.senses]
    told = [word for sense in found.senses for word in sense.words]
    assert [row[0] for row in words["rows"]] == [word.word for word in told]
    assert [row[5:8] for row in words["rows"]] == [[w.checked, w.changed, w.random_changed] for w in told]
    assert [row[2] for row in examples["rows"]] == [line.document for sense in found.senses for line in sense.examples]
    script_json(page)


def numbers_of(page: Any, numbers: Any) -> np.ndarray:
    return from_byte_planes(zlib.decompress(page.numbers.blobs[numbers["at"]]), numbers["dtype"], numbers["shape"])


def test_a_served_page_has_the_same_points_as_numbers_and_the_same_tables(bank_store: Any) -> None:
    found: Senses = bank_store.senses("bank", checked=2, words=2)
    whole, page = senses_page(found), served_senses_page(found)
    assert (page.title, page.findings, page.status) == (whole.title, whole.findings, whole.status)
    [cloud, *tables], [scatter, *same] = page.panels, whole.panels
    assert tables == same
    points: Any = scatter["points"]
    np.testing.assert_allclose(numbers_of(page, cloud["points"]), [(p["x"], p["y"]) for p in points], atol=1e-6)
    groups = [cloud["groups"][n] for n in numbers_of(page, cloud["of"])]  # type: ignore[index]
    assert groups == [point["group"] for point in points]
    for name in ("name", "title", "note", "x", "y", "called"):
        assert cloud[name] == scatter[name]
    assert cloud["most"] == MOST
    examples = [line for sense in found.senses for line in sense.examples]
    shown = found.found.take(example_numbers(found))
    assert list(zip(shown.shard, shown.row.tolist(), strict=True)) == [(line.shard, line.row) for line in examples]


def test_labels_are_the_names_and_one_sense_has_no_words(bank_store: Any) -> None:
    page: Any = senses_page(bank_store.senses("bank", 1)).data()
    assert [panel["name"] for panel in page["panels"]] == ["Occurrences", "Senses", "Examples"]
    assert {point["group"] for point in page["panels"][0]["points"]} == {"sense 1"}
    assert page["title"] == "“bank”: 16 occurrences, 1 sense"


def test_a_context_ends_where_a_word_does_and_says_that_the_text_goes_on(bank_store: Any) -> None:
    found = bank_store.senses("bank", 1, context=12)
    contexts = {name: joined(each) for name, each in zip(found.found.document, contexts_of(found), strict=True)}
    assert contexts["r0"] == "… the muddy |bank| of the …"  # "The boat drifted towards the muddy bank of the river."
    assert contexts["r5"] == "… up on the |bank| of the …"
    assert contexts["m1"] == "The |bank| raised its …"
    found = bank_store.senses("bank", 1, context=0)
    assert {joined(each) for each in contexts_of(found)} == {"… |bank| …"}


def test_what_no_browser_would_draw_is_refused(bank_store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    found = bank_store.senses("bank", 1)
    monkeypatch.setattr(senses, "LIMIT", 500)
    with pytest.raises(RegardError, match=r"fewer characters on either side than 60 \(context=, --context\)"):
        senses_page(found)
    monkeypatch.setattr(senses, "MOST", 15)
    assert served_senses_page(found).panels[0]["kind"] == "cloud"
    with pytest.raises(RegardError, match="'bank' has 16 occurrences, 15 are the most that a page shows"):
        senses_page(found)


def test_what_could_not_be_told_apart_is_said_to_be_so_in_title_sentence_cloud_and_tables(cloud_store: Any) -> None:
    found = cloud_store.senses("bank")
    for page in (senses_page(found), served_senses_page(found)):
        data: Any = page.data()
        assert data["title"] == "“bank”: 30 occurrences, whose senses could not be told apart"
        assert data["findings"] == sense_sentences(found)
        assert "sense 1" not in str(data).lower()
        assert "1 sense" not in str(data).lower()
        assert data["panels"][1]["rows"][0][0] == "could not be told apart"
    drawn: Any = senses_page(found).data()["panels"][0]
    assert {point["group"] for point in drawn["points"]} == {"could not be told apart"}
