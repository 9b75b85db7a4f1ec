"""What points and lines are, asked for one by one: the store's own words, and the text that they were read in."""

from pathlib import Path
from typing import Any

import pytest

from regard.corpus.asking.look_up import look_up
from regard.corpus.manifest import ModelSummary
from regard.corpus.store import Store
from regard.server.places import Places, reader_of
from regard.server.work import RefusedError
from tests.support.own_models import opened
from tests.support.stores import MONEYS, RIVERS


@pytest.fixture
def places(bank_store: Any) -> Places:
    found = look_up(bank_store, "bank")
    return Places(bank_store, found.shard, found.row.tolist(), 200)


def test_places_are_told_in_their_order_as_far_as_there_are_any(places: Places) -> None:
    told = places.told(0, 500)
    assert len(told) == len(places) == 16
    texts = ["".join(each["context"].values()) for each in told]  # type: ignore[attr-defined]
    assert sorted(texts) == sorted(f"{text}." for text in RIVERS + MONEYS)
    assert {each["context"]["form"] for each in told} == {"bank"}  # type: ignore[index]
    for each, text in zip(told, texts, strict=True):
        assert text[each["start"] :].startswith("bank")  # type: ignore[misc]
    assert places.told(14, 5) == told[14:]
    assert places.size == 16 * 12
    for number in (16, 1 << 40, -1):
        with pytest.raises(RefusedError, match="there are 16, numbered from 0") as refused:
            places.told(number, 1)
        assert refused.value.status == 404


def test_a_place_has_its_text_and_the_model_that_reads_it(places: Places, minilm: Any) -> None:
    [told] = places.told(3, 1)
    found = places.passage(3, [opened("gpt"), minilm])
    assert found["model"] == 1
    assert found["text"] == "".join(told["context"].values())  # type: ignore[attr-defined]
    assert found["text"][found["start"] : found["end"]] == "bank"  # type: ignore[index,misc]
    assert (found["document"], found["first"], found["same"]) == (told["document"], 0, True)
    with pytest.raises(RefusedError, match="given 16"):
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
        assert reader_of(store, [minilm]) == 0
        object.__setattr__(store.manifest, "model", ModelSummary(name, source, "0" * 64, 6, 12, 384))
        with pytest.raises(RefusedError, match=says) as refused:
            reader_of(store, [minilm])
        assert refused.value.status == 422
        assert "started with all-MiniLM-L6-v2" in refused.value.line
        with pytest.raises(RefusedError, match="started with no model"):
            reader_of(store, [])
        object.__setattr__(store.manifest, "model", ModelSummary(minilm.name, source, "", 6, 12, 384))
        assert reader_of(store, [opened("gpt"), minilm]) == 1  # without a digest the name alone tells
