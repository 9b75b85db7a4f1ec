"""An id that was seen is found with the place where it was first, however many there are."""

import tracemalloc

from regard.corpus.reading.seen_ids import SeenIds


def test_the_first_place_is_given() -> None:
    ids = SeenIds()
    assert ids.add("a", 0, 7) is None
    assert ids.add("b", 3, None) is None
    assert ids.add("a", 4, 1) == (0, 7)
    assert ids.add("b", 0, 2) == (3, None)
    assert ids.add("A", 0, 2) is None


def test_a_large_line_and_many_ids() -> None:
    ids = SeenIds()
    for number in range(5000):
        assert ids.add(f"id {number}", number, number + (1 << 39)) is None
    for number in range(5000):
        assert ids.add(f"id {number}", 0, 0) == (number, number + (1 << 39))


def test_it_is_small() -> None:
    count = 30_000
    tracemalloc.start()
    ids = SeenIds()
    before = tracemalloc.get_traced_memory()[0]
    assert not any(ids.add(str(number), 0, number) for number in range(count))
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 16 / 0.75 <= held / count < 44
