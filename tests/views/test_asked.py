import json

from regard.corpus.asking.find_sentences import concordance_sentences
from regard.corpus.asking.sense_sentences import sense_sentences
from regard.corpus.asking.shift_sentences import shift_sentences
from regard.views.asked import find_data, senses_data, shift_data


def test_what_was_found_is_plain_json(bank_store) -> None:
    found = bank_store.senses("bank", checked=0)
    shift = bank_store.shift("bank", column="kind")
    lines = bank_store.find("bank")
    one, two, three = (json.loads(json.dumps(each, allow_nan=False)) for each in (
        senses_data(found), shift_data(shift), find_data(lines)))  # fmt: skip
    assert [each["occurrences"] for each in one["senses"]] == found.clusters.sizes()
    assert len(one["points"]) == 16
    assert one["accuracy"] is None
    assert two["change"]["apd"] == shift.change.apd
    assert three["lines"][0]["start"] == lines.lines[0].start


def test_what_could_not_be_told_apart_is_said_and_sentences_stand_with_their_numbers(cloud_store, bank_store) -> None:
    found = cloud_store.senses("bank")
    data = senses_data(found)
    assert data["told_apart"] is False
    assert data["findings"] == sense_sentences(found)
    assert {each["sense"] for each in [*data["points"], *found.rows()]} == {"could not be told apart"}
    assert senses_data(bank_store.senses("bank", 1))["told_apart"] is True
    shift = cloud_store.shift("bank", column="age")
    assert shift_data(shift)["findings"] == shift_sentences(shift)
    assert {row["sense"] for row in shift.rows()} == {"could not be told apart"}
    lines = cloud_store.find("bank")
    assert find_data(lines)["findings"] == concordance_sentences(lines)
