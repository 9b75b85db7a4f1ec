"""Skip-gram and CBOW: which words are given, which are guessed, and the sizes of the tables."""

import pytest

from drawings.word2vec import skip_gram_and_cbow
from tests.lessons.test_attention import told


@pytest.mark.parametrize("middle", [0, 2, 4])
def test_every_word_once_a_question(middle: int) -> None:
    words = ["a", "man", "on", "river", "bank"]
    text = told(figure := skip_gram_and_cbow(words, middle, 1304, 64)).splitlines()
    assert all(text.count(word) == 2 for word in words)
    assert text.count("1,304 × 64") == 4
    assert text.count("its row") == text.count("mean of rows") == 1
    given = [each for each in figure.axes[0].texts if each.get_text() == words[middle]]
    left, right = sorted(each.get_position()[0] for each in given)
    assert left < 1  # skip-gram's middle is given
    assert right > 9  # CBOW's is guessed
