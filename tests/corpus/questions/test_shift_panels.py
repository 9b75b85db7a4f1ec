"""A change of meaning in every medium, held against its numbers."""

from dataclasses import replace
from typing import Any

from regard.corpus.questions.shift import SharedSense, shift_sentences
from regard.display.terminal_parts import plain_lines_of_parts
from tests.said.reading import numbers_in


def test_the_distance_its_test_and_the_senses(bank_store: Any) -> None:
    found = bank_store.shift("bank", column="kind", examples=1)
    said = "\n".join(plain_lines_of_parts(found.shown(80), 80))
    assert f"{found.change.apd:.2f}" in said
    assert f"p = {found.change.p:.2g}, 999 permutations of documents" in " ".join(said.split())
    assert "kind=river (8)" in said
    assert "gained" in said
    wide = "\n".join(plain_lines_of_parts(found.shown(300), 300))
    assert all(sentence in wide for sentence in shift_sentences(found))
    assert max(map(len, said.splitlines())) <= 80


def test_what_could_not_be_told_apart_is_no_sense(cloud_store: Any) -> None:
    found = cloud_store.shift("bank", column="age")
    said = "\n".join(plain_lines_of_parts(found.shown(300), 300))
    assert shift_sentences(found)[1] in said
    assert "sense 1" not in said
    assert {row["sense"] for row in found.rows()} == {"not separated"}


def test_json_page_and_picture_have_the_shares_of_both_groups(bank_store: Any) -> None:
    found = bank_store.shift("bank", column="kind")
    data: Any = found.to_json()
    assert (data["format"], data["change"]["apd"]) == ("regard shift", found.change.apd)
    assert data["findings"] == shift_sentences(found)
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


def shared(name: str, one: int, other: int, fate: Any, p: float | None) -> SharedSense:
    return SharedSense(name, (one, other), (one / 15, other / 15), fate, ((), ()), p)


def test_a_sense_that_is_rare_or_not_significant_neither_came_nor_went(cloud_store: Any) -> None:
    found = cloud_store.shift("bank", column="age", k=2)
    assert "needed" in shift_sentences(found)[1]
    found = replace(found, clusters=replace(found.clusters, silhouettes={}, separations={}))
    senses = (shared("1", 9, 7, "kept", 0.4), shared("2", 0, 2, "unsure", None), shared("3", 6, 0, "lost", 0.021),
              shared("4", 0, 5, "unsure", 0.05004), shared("5", 0, 1, "kept", 0.01))  # fmt: skip
    _, moved, largest = shift_sentences(replace(found, senses=senses))
    assert numbers_in(moved) == ["3"]
    assert numbers_in(largest) == ["3", "40%", "0%", "0.021"]
    _, none = shift_sentences(replace(found, senses=senses[:2]))
    assert numbers_in(none) == ["2"]
    _, largest = shift_sentences(replace(found, senses=(senses[0], senses[4])))
    assert numbers_in(largest) == ["5", "0%", "7%", "0.01"]
