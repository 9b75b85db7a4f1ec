"""Lines that a painter reads: as a person writes them, there and back, and refused in a line."""

from itertools import permutations

import pytest

from regard import RegardError
from regard.train.scene_words import DIGIT_PLACES, EXAMPLE, LENGTH, PHRASES, WORDS, Scene, read_scene


def test_lines_there_and_back() -> None:
    for corners in permutations(range(4), 2):
        scene = Scene((corners[0] + 3, 9 - corners[1]), corners)
        assert read_scene(scene.text) == scene
        assert len(scene.words) == LENGTH
        assert set(scene.words) <= set(WORDS)
    assert read_scene(EXAMPLE) == Scene((7, 2), (0, 3))


def test_commas_and_capitals_are_as_people_write_them() -> None:
    assert read_scene("A seven top left,a two bottom right").text == EXAMPLE


def test_places_of_words() -> None:
    words = Scene((7, 2), (1, 2)).words
    assert [words[at] for at in DIGIT_PLACES] == ["seven", "two"]
    assert [" ".join(words[at] for at in phrase) for phrase in PHRASES] == ["a seven top right", "a two bottom left"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a cat top left , a two bottom right", "'cat' is none of a painter's words: , a top bottom left right zero"),
        ("a seven top left", "needs two digits, each in a corner, such as 'a seven top left , a two"),
        ("a seven left top , a two bottom right", "needs two digits, each in a corner"),
        ("a seven top left a two bottom right", "needs two digits"),
        ("", "TEXT '': needs two digits"),
        ("a seven top left , a two top left", "both digits are top left, needs two corners"),
    ],
)
def test_what_is_no_such_line(text: str, message: str) -> None:
    with pytest.raises(RegardError, match=message):
        read_scene(text)
