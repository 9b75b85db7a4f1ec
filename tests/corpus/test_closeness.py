"""How near vectors are to float32's is counted in whole numbers, so that shards add up in any order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.corpus.closeness import (
    PARTS,
    Closeness,
    check_closeness,
    closeness_of_counts,
    closeness_sentence,
)
from regard.errors import RegardError

some = st.builds(Closeness, *[st.integers(0, 2 * PARTS)] * 4)


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
    numbers = Closeness(1000, 20_000_000, 100_000, 700 * PARTS).numbers()
    assert numbers == pytest.approx(
        {"states": 1000, "mean_cosine": 0.99998, "least_cosine": 0.9999, "following_cosine": 0.3}
    )
    assert closeness_sentence(numbers) == (
        "vectors computed in bf16: their cosine with float32's is 0.999980 on average and 0.999900 at least, over "
        "1,000 states of these texts; that of tokens that follow each other is 0.30 on average"
    )
    assert Closeness().numbers() == {}


def test_what_is_not_ours_is_refused() -> None:
    check_closeness({})
    check_closeness(Closeness(3).numbers())
    for wrong in ({"states": 3}, Closeness(3).numbers() | {"states": "3"}, Closeness(3).numbers() | {"states": True}):
        with pytest.raises(TypeError, match="closeness"):
            check_closeness(wrong)
    with pytest.raises(RegardError, match="counts name most, worst of bf16"):
        closeness_of_counts({"bf16_most": 1, "bf16_worst": 2})
