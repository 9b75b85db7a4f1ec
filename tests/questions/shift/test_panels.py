"""A change of meaning in every medium, held against its numbers."""

from typing import Any

from regard.display.terminal_parts import plain_lines_of_parts
from regard.questions.shift.sentences import of_shift


def test_the_distance_its_test_and_the_senses(bank_store: Any) -> None:
    found = bank_store.shift("bank", column="kind", examples=1)
    said = "\n".join(plain_lines_of_parts(found.shown(80), 80))
    assert f"{found.change.apd:.2f}" in said
    assert f"p = {found.change.p:.2g}, 999 permutations of documents" in " ".join(said.split())
    assert "kind=river (8)" in said
    assert "gained" in said
    wide = "\n".join(plain_lines_of_parts(found.shown(300), 300))
    assert all(sentence in wide for sentence in of_shift(found))
    assert max(map(len, said.splitlines())) <= 80


def test_what_could_not_be_told_apart_is_no_sense(cloud_store: Any) -> None:
    found = cloud_store.shift("bank", column="age")
    said = "\n".join(plain_lines_of_parts(found.shown(300), 300))
    assert of_shift(found)[1] in said
    assert "sense 1" not in said
    assert {row["sense"] for row in found.rows()} == {"not separated"}


def test_json_page_and_picture_have_the_shares_of_both_groups(bank_store: Any) -> None:
    found = bank_store.shift("bank", column="kind")
    data: Any = found.to_json()
    assert (data["format"], data["change"]["apd"]) == ("regard shift", found.change.apd)
    assert data["findings"] == of_shift(found)
    page: Any = found.page().data()
    assert [panel["name"] for panel in page["panels"]] == ["Senses", "Fractions", "Distances", "Examples"]
    senses, shares = page["panels"][:2]
    expected = [[*each.occurrences, *each.shares] for each in found.senses]
    assert [[row[1], row[3], row[2], row[4]] for row in senses["rows"]] == expected
    assert [part[1] for part in shares["parts"]] == [share for each in found.senses for share in each.shares]
    examples = [line for each in found.senses for lines in each.examples for line in lines]
    assert [row[3:] for row in page["panels"][3]["rows"]] == [[line.document, line.start] for line in examples]
    widths = [bar.get_width() for bar in found.plot().axes[0].patches]
    assert widths == [part[1] for part in shares["parts"]]
