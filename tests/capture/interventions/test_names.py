"""Places in a model's attention as a person names them, and what is refused there."""

import pytest

import regard
from regard.text.words import Word


@pytest.mark.usefixtures("no_checks_of_annotations")
def test_what_is_no_place() -> None:
    for make, says in (
        (lambda: regard.head(0, 1, part="middle"), "part: given 'middle', needs one of 'encoder', 'decoder', 'cross'"),
        (lambda: regard.head(-1, 1), "layer: given -1, needs a number from 0 on"),
        (lambda: regard.head(1, 1.5), "head: given 1.5, needs a number from 0 on"),
        (lambda: regard.edge(1, 2, layers="3"), "layer: given '3', needs a number"),
        (lambda: regard.edge(1, 2, heads=[]), "heads: given none, needs at least one, or None for all"),
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
