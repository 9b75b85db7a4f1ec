from dataclasses import replace
from typing import Any

from regard.questions.shift.answer import SharedSense
from regard.questions.shift.sentences import of_shift
from tests.said.reading import numbers_in


def shared(name: str, one: int, other: int, fate: Any, p: float | None) -> SharedSense:
    return SharedSense(name, (one, other), (one / 15, other / 15), fate, ((), ()), p)


def test_a_sense_that_is_rare_or_not_significant_neither_came_nor_went(cloud_store: Any) -> None:
    found = cloud_store.shift("bank", column="age", k=2)
    assert "needed" in of_shift(found)[1]
    found = replace(found, clusters=replace(found.clusters, silhouettes={}, separations={}))
    senses = (shared("1", 9, 7, "kept", 0.4), shared("2", 0, 2, "unsure", None), shared("3", 6, 0, "lost", 0.021),
              shared("4", 0, 5, "unsure", 0.05004), shared("5", 0, 1, "kept", 0.01))  # fmt: skip
    _, moved, largest = of_shift(replace(found, senses=senses))
    assert numbers_in(moved) == ["3"]
    assert numbers_in(largest) == ["3", "40%", "0%", "0.021"]
    _, none = of_shift(replace(found, senses=senses[:2]))
    assert numbers_in(none) == ["2"]
    _, largest = of_shift(replace(found, senses=(senses[0], senses[4])))
    assert numbers_in(largest) == ["5", "0%", "7%", "0.01"]


def test_senses_that_are_not_separated_have_neither_come_nor_gone(cloud_store: Any) -> None:
    assert len(of_shift(cloud_store.shift("bank", column="age"))) == 2
    assert len(of_shift(cloud_store.shift("bank", column="age", k=1))) == 1
