"""What a store is asked through the server: the pages hold what the store answers."""

from typing import Any

import pytest

from regard.errors import RegardError
from regard.server.asked import CorpusAsked
from regard.server.corpora import corpus_page
from regard.server.work import Job, RefusedError


def page_of(opened: Any, **asked: Any) -> Any:
    return corpus_page([opened], CorpusAsked.model_validate(asked), Job(1000.0)).page.data()


def test_every_occurrence_is_listed_with_its_word_marked(bank_store: Any) -> None:
    page = page_of(bank_store, about="occurrences", word="bank")
    found = bank_store.find("bank")
    rows = page["panels"][0]["rows"]
    assert len(rows) == found.total == len(found.lines)
    for row, line in zip(rows, found.lines, strict=True):
        assert row[0] == {"left": line.left, "form": line.form, "right": line.right}
        assert row[1:] == [line.document, line.start]
    assert page["findings"] == [f"“bank” occurs {found.total} times; here are all."]


def test_like_a_sentence_the_nearest_come_first(bank_store: Any) -> None:
    page = page_of(bank_store, about="occurrences", word="bank", like="The river rose over its bank.")
    similarities = [row[3] for row in page["panels"][0]["rows"]]
    assert similarities == sorted(similarities, reverse=True)
    assert page["panels"][0]["columns"][3]["name"] == "similarity"


def test_senses_are_the_librarys_page(bank_store: Any) -> None:
    page = page_of(bank_store, about="senses", word="bank", senses=2)
    cloud = next(panel for panel in page["panels"] if panel["kind"] == "scatter")
    assert len(cloud["points"]) == bank_store.find("bank").total
    assert len({point["group"] for point in cloud["points"]}) == 2


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
    with pytest.raises(RefusedError, match="this server has 1") as found:
        page_of(bank_store, store=1, about="occurrences", word="bank")
    assert found.value.status == 422
