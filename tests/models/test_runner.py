"""Texts are put into batches of like lengths: each once, and no batch larger than may be."""

from hypothesis import given
from hypothesis import strategies as st

from regard.models.runner import BATCH_TOKENS, batches_of_similar_length


@given(st.lists(st.integers(1, 3 * BATCH_TOKENS // 2), max_size=40), st.none() | st.integers(1, 7))
def test_every_text_is_in_one_batch_that_may_be(lengths: list[int], most: int | None) -> None:
    found = list(batches_of_similar_length(lengths, most))
    assert sorted(number for batch in found for number in batch) == list(range(len(lengths)))
    for batch in found:
        padded = max(lengths[n] for n in batch) * len(batch)
        assert padded <= BATCH_TOKENS or len(batch) == 1  # a text alone may be longer
        assert most is None or len(batch) <= most
    ordered = [lengths[n] for batch in found for n in batch]
    assert ordered == sorted(lengths)


def test_short_texts_go_together() -> None:
    assert list(batches_of_similar_length([5, 3, 5])) == [[1, 0, 2]]
    assert list(batches_of_similar_length([5, 3, 5], 1)) == [[1], [0], [2]]
    assert list(batches_of_similar_length([BATCH_TOKENS, 1])) == [[1], [0]]
