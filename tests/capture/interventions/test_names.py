"""Places in a model's attention as a person names them, and what is refused there."""

import pytest

import regard
from regard.capture.interventions.names import places_of_intervention, tokens_at, written
from regard.text.tokens import encoded_ids
from regard.text.words import Word


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_no_place() -> None:
    for make, says in (
        (lambda: regard.head(0, 1, part="middle"), "part: got 'middle', expected one of 'encoder', 'decoder', 'cross'"),
        (lambda: regard.head(-1, 1), "layer: got -1, expected a number of 0 or more"),
        (lambda: regard.head(1, 1.5), "head: got 1.5, expected a number of 0 or more"),
        (lambda: regard.edge(1, 2, layers="3"), "layers: got '3', expected whole numbers"),
        (lambda: regard.edge(1, 2, heads=[]), "heads: got none, expected at least one number, or None for all"),
    ):
        with pytest.raises(regard.RegardError, match=says):
            make()


def test_they_say_what_they_are() -> None:
    assert str(regard.ablate(regard.head(3, 5))) == "ablated: head 5 of layer 3"
    assert str(regard.head(3, 5, part="cross")) == "head 5 of layer 3 of the cross-attention"
    edge = regard.edge("bank", 4, layers=[2, 5], heads=1, part="encoder")
    assert str(edge) == "the edge from “bank” to 4 in layers 2, 5 of the encoder, heads 1"
    assert str(regard.edge(Word("bank", 3, 7, (1,)), 0)) == "the edge from “bank” to 0 in all layers"
    assert str(regard.edge(("bank", 1), 0)) == "the edge from “bank” (occurrence 1) to 0 in all layers"


TEXT = encoded_ids([7, 8, 7, 9])  # its words are the ids


def test_what_names_places() -> None:
    assert places_of_intervention("at", None) is None
    assert places_of_intervention("at", "bank") == ("bank",)
    assert places_of_intervention("at", ("bank", 1)) == (("bank", 1),)
    assert places_of_intervention("at", (1, "bank")) == (1, "bank")
    assert places_of_intervention("at", range(2)) == (0, 1)
    for given in (-1, 1.5, [True], {}):
        with pytest.raises(regard.RegardError, match=r"at: got"):
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
