"""The tokens that an intervention names."""

import pytest

import regard
from regard.capture.interventions.places import places_of_intervention, tokens_at, written
from regard.text.tokens import encoded_ids

TEXT = encoded_ids([7, 8, 7, 9])  # its words are the ids


def test_what_names_places() -> None:
    assert places_of_intervention("at", None) is None
    assert places_of_intervention("at", "bank") == ("bank",)
    assert places_of_intervention("at", ("bank", 1)) == (("bank", 1),)
    assert places_of_intervention("at", (1, "bank")) == (1, "bank")
    assert places_of_intervention("at", range(2)) == (0, 1)
    for given in (-1, 1.5, [True], {}):
        with pytest.raises(regard.RegardError, match=r"at: given"):
            places_of_intervention("at", given)


def test_their_tokens_come_in_their_order() -> None:
    def at(*places) -> tuple[int, ...]:
        return tokens_at("at", TEXT.text, TEXT.tokens, places)

    assert at("7") == (0, 2)
    assert at(3, ("7", 1)) == (3, 2)
    assert at("9", "8") == (3, 1)
    assert tokens_at("at", TEXT.text, TEXT.tokens, None) == (0, 1, 2, 3)
    with pytest.raises(regard.RegardError, match="at: token 4 is out of range, the text has tokens 0 to 3"):
        at(4)
    with pytest.raises(regard.RegardError, match="at: names token 2 twice"):
        at("7", 2)


def test_how_they_are_said() -> None:
    assert written(None) == "all positions"
    assert written((3, "bank", ("bank", 1))) == "token 3, “bank”, “bank” (occurrence 1)"
    assert written(tuple(range(9))) == "9 places"
