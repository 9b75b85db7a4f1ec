"""How near vectors are to float32's is counted in whole numbers, so that shards add up in any order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.closeness import PARTS, Closeness, closeness_of_counts, closeness_sentence

some = st.builds(Closeness, *[st.integers(0, 2 * PARTS)] * 5)


@given(some, some, some)
def test_the_order_does_not_matter(a: Closeness, b: Closeness, c: Closeness) -> None:
    assert a + b + c == c + (b + a)
    assert (a + b).most == max(a.most, b.most)
    assert (a + b).off == a.off + b.off


@given(some)
def test_counts_come_back(a: Closeness) -> None:
    assert closeness_of_counts({"rows": 7, **a.counts()}) == (a, {"rows": 7})
    assert closeness_of_counts({"rows": 7}) == (Closeness(), {"rows": 7})


def test_cosines_are_said() -> None:
    numbers = Closeness(1000, 20_000_000, 100_000, 990, 693 * PARTS).numbers()
    assert numbers == pytest.approx(
        {"states": 1000, "mean_cosine": 0.99998, "least_cosine": 0.9999, "following_cosine": 0.3}
    )
    both = closeness_sentence(numbers), closeness_sentence(Closeness(1000, 20_000_000, 100_000).numbers())
    for sentence in both:
        assert all(number in sentence for number in ("2.0e-05 on average", "1.0e-04 at most", "1,000 sampled states"))
    assert ["0.7 on average" in sentence for sentence in both] == [True, False]
    assert Closeness().numbers() == {}
    assert closeness_sentence({}).endswith("no comparison with float32.")


@pytest.mark.parametrize(
    ("off", "most", "following", "coarse"),
    [
        (0.0001, 0.001, 0.7, False), (0.01, 0.02, 0.7, True), (0.001, 0.1, 0.7, True), (0.0001, 0.001, 0.0002, True),
        (0.0001, 0.0001, None, False), (0.1, 0.3, None, True),
    ],
)  # fmt: skip
def test_what_is_coarse_is_said_to_be(off: float, most: float, following: float | None, coarse: bool) -> None:
    numbers = {"states": 7, "mean_cosine": 1 - off, "least_cosine": 1 - most}
    numbers |= {} if following is None else {"following_cosine": 1 - following}
    assert ("difference is large" in closeness_sentence(numbers)) == coarse
