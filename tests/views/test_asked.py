import json

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
