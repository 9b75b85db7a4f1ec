import pytest

from regard.errors import RegardError
from regard.trace.trace import Trace
from regard.web.add_traces import add_trace
from regard.web.assemble import Choice, page_of
from regard.web.numbers import Encoding, NumberStore
from regard.web.page import Page
from regard.web.sizes import check_page_size, estimated_size, steps_calls, steps_size


@pytest.mark.parametrize("encoding", ["int16", "float32"])
@pytest.mark.parametrize(("layers", "heads"), [(None, None), ((1, 3), None), ((1, 3), (0, 5, 7))])
def test_the_estimate_is_near_what_is_written(
    bank: list[Trace], encoding: Encoding, layers: tuple[int, ...] | None, heads: tuple[int, ...] | None
) -> None:
    page = Page("", layers=layers, heads=heads, numbers=NumberStore(encoding))
    estimate = estimated_size([bank[0]], page)
    add_trace(page, bank[0], "text 1")
    assert 0.8 * estimate < page.numbers.size < 1.1 * estimate  # norms are not counted, nor what deflating saves


def test_the_size_of_steps_is_near_too(bank: list[Trace]) -> None:
    plain, page = Page(""), Page("", steps_of=(2,))
    estimate = steps_size([bank[0]], page)
    assert steps_size([bank[0]], plain) == 0
    for each in (plain, page):
        add_trace(each, bank[0], "text 1")
    assert 0.85 * estimate < page.numbers.size - plain.numbers.size <= estimate + 100
    assert list(steps_calls(page, bank[0])) == [(2, 0)]
    assert list(steps_calls(Page("", steps_of=None, layers=(1, 2)), bank[0])) == [(1, 0), (2, 0)]


def test_the_limit() -> None:
    check_page_size(10, None)
    check_page_size(10, 10)
    with pytest.raises(
        RegardError, match=r"about 310\.0 MB, 200\.0 MB are the most: leave out layers \(layers=, --html-"
    ):
        check_page_size(310_000_000, 200_000_000)


def test_the_steps_of_two_short_texts_are_small(bank: list[Trace]) -> None:
    plain, page = page_of(bank), page_of(bank, Choice(steps=True))
    assert plain.numbers.size < 380_000
    assert page.numbers.size < 2_900_000  # of it 2.0 MB are W_O · value of 12 heads, 28 tokens and 6 layers
