from dataclasses import replace
from typing import Any

from regard.questions.shift.answer import SharedSense
from regard.questions.shift.sentences import of_shift


def shared(name: str, one: int, other: int, fate: Any, p: float | None) -> SharedSense:
    return SharedSense(name, (one, other), (one / 15, other / 15), fate, ((), ()), p)


def test_what_came_what_went_and_what_is_not_shown(cloud_store: Any) -> None:
    found = cloud_store.shift("bank", column="age", k=2)
    assert of_shift(found)[1].startswith("You asked for 2 senses, which have a mean silhouette of 0.")
    found = replace(found, clusters=replace(found.clusters, silhouettes={}, separations={}))
    change = replace(found.change, p=0.975)
    senses = (shared("1", 9, 7, "kept", 0.4), shared("2", 0, 2, "unsure", None), shared("3", 6, 0, "lost", 0.021),
              shared("4", 0, 5, "unsure", 0.05004), shared("5", 0, 1, "kept", 0.01))  # fmt: skip
    said = of_shift(replace(found, change=change, senses=senses))
    assert said == [
        "“bank” differs between age=a and age=b no more than by chance: p = 0.975, 999 permutations of documents.",
        "It is not shown that sense 2 was gained: 0 of 15 occurrences in age=a (0%), 2 of 15 occurrences in age=b "
        "(13%); it takes 5 occurrences to test it.",
        "Sense 3 was lost: 6 of 15 occurrences in age=a (40%), 0 of 15 occurrences in age=b (0%); p = 0.021, corrected "
        "for 5 senses.",
        "It is not shown that sense 4 was gained: 0 of 15 occurrences in age=a (0%), 5 of 15 occurrences in age=b "
        "(33%); p = 0.05004, corrected for 5 senses, and 0.05 or less is needed.",
        "The share of sense 5 differs by more than chance: 0 of 15 occurrences in age=a (0%), 1 of 15 occurrences in "
        "age=b (7%); p = 0.01, corrected for 5 senses.",
    ]
    few = replace(found, change=replace(change, p=0.05), permuted="occurrences", senses=senses[:1] * 2)
    assert of_shift(few) == [
        "“bank” differs between age=a and age=b by more than chance: p = 0.05, 999 permutations of occurrences, which "
        "takes those of one document as independent.",
        "None of the 2 senses came or went (at most 2% of one side and at least 10% of the other), and none has a "
        "share that differs by more than chance.",
    ]


def test_senses_that_could_not_be_told_apart_have_neither_come_nor_gone(cloud_store: Any) -> None:
    found = cloud_store.shift("bank", column="age")
    assert of_shift(found)[1].startswith("The senses of “bank” could not be told apart: of the numbers tried (2")
    assert len(of_shift(found)) == 2
    assert len(of_shift(cloud_store.shift("bank", column="age", k=1))) == 1
