"""What a store is asked through the server: the pages hold what the store answers."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.exceptions import HTTPException

from regard.corpus.asking.occurrences import look_up
from regard.corpus.schema import ModelSummary
from regard.corpus.store import Store
from regard.errors import RegardError
from regard.server.corpora import PanelOccurrences, corpus_page, model_of_store
from regard.server.requests import CorpusRequest
from tests.support.own_models import opened
from tests.support.own_models import opened as tiny
from tests.support.stores import MONEYS, RIVERS


def page_of(opened: Any, **asked: Any) -> Any:
    return corpus_page([opened], CorpusRequest.model_validate(asked)).page.data()


def test_every_occurrence_is_listed_with_its_word_marked(bank_store: Any) -> None:
    page = page_of(bank_store, about="occurrences", word="bank")
    found = bank_store.find("bank")
    rows = page["panels"][0]["rows"]
    assert len(rows) == found.total == len(found.lines)
    for row, line in zip(rows, found.lines, strict=True):
        assert row[0] == {"left": line.left, "form": line.form, "right": line.right}
        assert row[1:] == [line.document, line.start]
    assert page["findings"] == found.findings()


def test_senses_are_the_librarys_page_and_every_point_and_example_a_place(bank_store: Any) -> None:
    kept = corpus_page([bank_store], CorpusRequest(about="senses", word="bank", senses=2))
    page: Any = kept.page.data()
    found = bank_store.senses("bank", 2)
    cloud, last = page["panels"][0], page["panels"][-1]
    assert cloud["points"]["shape"] == [found.found.row.size, 2]
    assert cloud["groups"] == ["sense 1", "sense 2"]
    assert [panel.get("places", False) for panel in page["panels"]] == [True, False, False, True]
    told = kept.places[0].with_context(0, 500)
    assert [each["document"] for each in told] == [row["document"] for row in found.rows()]
    assert [each["context"] for each in kept.places[3].with_context(0, 500)] == [row[1] for row in last["rows"]]
    assert kept.size > len(kept.data)
    assert kept.alone is not None
    assert kept.alone().panels[0]["kind"] == "scatter"


@pytest.fixture
def strangers_store(bank_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store that names a model which is not ours to load; whoever tries is told."""

    def load(source: Any = None, **_: Any) -> None:
        raise AssertionError(source)

    monkeypatch.setattr("regard.corpus.store_tables.load", load)
    with Store(bank_folder) as store:
        made = replace(store.manifest.model, name="theirs", source="stranger/model; rm -r x")
        object.__setattr__(store.manifest, "model", made)
        yield store


def test_a_model_that_the_store_names_is_not_loaded(strangers_store: Store) -> None:
    asked = CorpusRequest(about="senses", word="bank", senses=2)
    page: Any = corpus_page([strangers_store], asked, [tiny("gpt")]).page.data()
    assert any("start it with --model 'stranger/model; rm -r x': regard serve" in each for each in page["status"])
    assert any("not tested" in each for each in page["findings"])
    plain = corpus_page([strangers_store], CorpusRequest(about="occurrences", word="bank"))
    assert len(plain.page.data()["panels"][0]["rows"]) == 16  # type: ignore[index]


def test_the_servers_model_answers_where_it_made_the_store(strangers_store: Store, minilm: Any) -> None:
    asked = CorpusRequest(about="senses", word="bank", senses=2)
    page: Any = corpus_page([strangers_store], asked, [tiny("gpt"), minilm]).page.data()
    assert not any("start it with --model" in each for each in page["status"])
    assert strangers_store.model is minilm


def test_lines_are_places(bank_store: Any) -> None:
    kept = corpus_page([bank_store], CorpusRequest(about="occurrences", word="bank"))
    rows: Any = kept.page.data()["panels"][0]["rows"]  # type: ignore[index]
    told = kept.places[0].with_context(0, 500)
    assert [(each["document"], each["start"]) for each in told] == [(row[1], row[2]) for row in rows]


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"about": "occurrences"}, "one word"),
        ({"about": "occurrences", "word": "zebra"}, "zebra"),
        ({"about": "senses", "word": "zebra"}, "zebra"),
        ({"about": "heads"}, "statistics|heads"),
    ],
)
def test_what_the_store_does_not_have(bank_store: Any, asked: dict[str, Any], says: str) -> None:
    with pytest.raises(RegardError, match=says):
        page_of(bank_store, **asked)


def test_a_store_that_is_not_there(bank_store: Any) -> None:
    with pytest.raises(HTTPException, match="this server has 1") as found:
        page_of(bank_store, store=1, about="occurrences", word="bank")
    assert found.value.status_code == 422


@pytest.fixture
def places(bank_store: Any) -> PanelOccurrences:
    found = look_up(bank_store, "bank")
    return PanelOccurrences(bank_store, found.shard, found.row.tolist(), 200)


def test_places_are_told_in_their_order_as_far_as_there_are_any(places: PanelOccurrences) -> None:
    told = places.with_context(0, 500)
    assert len(told) == len(places) == 16
    texts = ["".join(each["context"].values()) for each in told]  # type: ignore[attr-defined]
    assert sorted(texts) == sorted(f"{text}." for text in RIVERS + MONEYS)
    assert {each["context"]["form"] for each in told} == {"bank"}  # type: ignore[index]
    for each, text in zip(told, texts, strict=True):
        assert text[each["start"] :].startswith("bank")  # type: ignore[misc]
    assert places.with_context(14, 5) == told[14:]
    assert places.size == 16 * 12
    for number in (16, 1 << 40, -1):
        with pytest.raises(HTTPException, match="there are 16, numbered from 0") as refused:
            places.with_context(number, 1)
        assert refused.value.status_code == 404


def test_a_place_has_its_text_and_the_model_that_reads_it(places: PanelOccurrences, minilm: Any) -> None:
    [told] = places.with_context(3, 1)
    found = places.passage(3, [opened("gpt"), minilm])
    assert found["model"] == 1
    assert found["text"] == "".join(told["context"].values())  # type: ignore[attr-defined]
    assert found["text"][found["start"] : found["end"]] == "bank"  # type: ignore[index,misc]
    assert (found["document"], found["first"], found["same"]) == (told["document"], 0, True)
    with pytest.raises(HTTPException, match="got 16"):
        places.passage(16, [minilm])


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("all-MiniLM-L6-v2", "", "start it with no --model: regard serve --store .*bank$"),
        ("mine", "", "start it with --model and the folder of mine: regard serve --store .*bank$"),
        (
            "mine",
            "/models/mine",
            "start it with --model /models/mine: regard serve --store .*bank --model /models/mine$",
        ),
    ],
)
def test_without_its_model_a_line_says_which_to_start_with(
    bank_folder: Path, minilm: Any, name: str, source: str, says: str
) -> None:
    with Store(bank_folder) as store:
        assert model_of_store(store, [minilm]) == 0
        object.__setattr__(store.manifest, "model", ModelSummary(name, source, "0" * 64, 6, 12, 384))
        with pytest.raises(HTTPException, match=says) as refused:
            model_of_store(store, [minilm])
        assert refused.value.status_code == 422
        assert "started with all-MiniLM-L6-v2" in refused.value.detail
        with pytest.raises(HTTPException, match="started with no model"):
            model_of_store(store, [])
