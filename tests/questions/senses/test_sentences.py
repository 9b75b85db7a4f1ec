"""The sentences on a word's senses, held against their numbers."""

from dataclasses import replace
from typing import Any

from regard.questions.senses.answer import ContextWord, Sense
from regard.questions.senses.sentences import (
    ablation_sentence,
    how_found,
    of_senses,
    sense_name,
    senses_not_told_apart,
    senses_title,
)


def sense(*words: ContextWord, name: str = "1") -> Sense:
    return Sense(name, 12, 0.75, 0.1, (), words)


def word(name: str, checked: int = 0, changed: float | None = None, random: float | None = None) -> ContextWord:
    return ContextWord(name, 2.0, 6, 1, checked, changed, random)


def test_words_that_changed_as_much_stand_together_the_most_first() -> None:
    done = sense(word("river", 6, 0.0, 0.0), word("the", 4, 0.5, 0.25), word("of", 6, 0.0, 0.0), word("boat"))
    assert ablation_sentence(done) == (
        "Cut from 4 to 6 occurrences, a word turns this share of them to another sense: “the” 50%; “river” and “of” "
        "0%; random words 0% to 25%."
    )
    assert ablation_sentence(sense(word("a", 3, 1.0, 0.0))) == (
        "Cut from 3 occurrences, a word turns this share of them to another sense: “a” 100%; random words 0%."
    )
    assert ablation_sentence(sense(word("boat"))) == ""


def test_every_sense_has_a_sentence_and_all_cuts_one(bank_store: Any) -> None:
    found = bank_store.senses("bank", checked=0, words=2)
    own = [sense(word("river", 6, 0.5, 0.0), word("the", 6, 0.0, 0.5)), sense(name="2")]
    first, second, cut = of_senses(replace(found, senses=tuple(own)))
    assert first == "Sense 1: 12 of 16 occurrences (75%); more often near it: “river” and “the”."
    assert second == "Sense 2: 12 of 16 occurrences (75%)."
    assert cut == (
        "Of 2 such words, cut one at a time (the occurrence may not attend to it), 1 turns more occurrences to another "
        "sense than a random word does: “river” (sense 1: 50%, random 0%)."
    )
    own = [sense(word("the", 6, 0.0, 0.0))]
    assert of_senses(replace(found, senses=(*own, *own)))[-1].startswith(
        "Of 2 such words, cut one at a time (the occurrence may not attend to it), none turns more occurrences"
    )
    assert of_senses(found)[-1] == ("None of these words was cut: whether they give a sense was not checked.")


def test_one_sense_that_was_asked_for_is_one(bank_store: Any) -> None:
    found = bank_store.senses("bank", 1)
    assert len(of_senses(found)) == 1  # k was given: there is nothing to explain
    assert sense_name(found, found.senses[0]) == "sense 1"
    assert senses_title(found) == "“bank”: 16 occurrences, 1 sense"


def test_senses_that_were_asked_for_are_claimed_only_as_far_as_they_separate(cloud_store: Any, bank_store: Any) -> None:
    found = cloud_store.senses("bank", 2, checked=0)
    assert of_senses(found)[0].startswith("You asked for 2 senses, which have a mean silhouette of 0.")
    assert of_senses(bank_store.senses("bank", 2, checked=0))[0].startswith("Sense 1")


def test_what_could_not_be_told_apart_is_no_sense(cloud_store: Any) -> None:
    found = cloud_store.senses("bank")
    assert [each.name for each in found.senses] == ["could not be told apart"]
    assert senses_title(found) == "“bank”: 30 occurrences, whose senses could not be told apart"
    (said,) = of_senses(found)
    assert said.startswith("The senses of “bank” could not be told apart: of the numbers tried (2, 3")
    assert "is needed) and a mean separation of " in said
    assert sense_name(found, found.senses[0]) == "could not be told apart"
    tried = {"silhouettes": {2: 0.125, 3: 0.2499}, "separations": {2: 0.09, 3: 0.07996}}
    found = replace(found, silhouettes=tried["silhouettes"], clusters=replace(found.clusters, **tried))
    assert how_found(found) == (
        "layer 5; mean silhouette and separation by number of senses: 2: 0.12 and 0.090, 3: 0.25 and 0.080; below 0.25 "
        "or 0.08 not told apart"
    )
    assert of_senses(found)[0].endswith(
        "of the numbers tried (2 and 3) 3 senses lie apart most, with a mean silhouette of 0.2499 (0.25 is needed) and "
        "a mean separation of 0.07996 (0.08)."
    )
    assert senses_not_told_apart("bank", 3, replace(found.clusters, silhouettes={})) == (
        "The senses of “bank” could not be told apart: no number of senses gives each of them two of the 3 occurrences "
        "and 2% of all."
    )
