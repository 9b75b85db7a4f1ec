import pytest

from regard.errors import RegardError
from regard.trace.trace import Trace
from regard.web.add_traces import add_trace
from regard.web.numbers import Encoding, NumberStore
from regard.web.page import Page
from regard.web.sizes import check_page_size, estimated_size


@pytest.mark.parametrize("encoding", ["int16", "float32"])
@pytest.mark.parametrize(("layers", "heads"), [(None, None), ((1, 3), None), ((1, 3), (0, 5, 7))])
def test_the_estimate_is_near_what_is_written(
    bank: list[Trace], encoding: Encoding, layers: tuple[int, ...] | None, heads: tuple[int, ...] | None
) -> None:
    page = Page("", layers=layers, heads=heads, numbers=NumberStore(encoding))
    estimate = estimated_size([bank[0]], page)
    add_trace(page, bank[0], "text 1")
    assert 0.8 * estimate < page.numbers.size < 1.1 * estimate  # norms are not counted, nor what deflating saves


def test_the_limit() -> None:
    check_page_size(10, None)
    check_page_size(10, 10)
    with pytest.raises(
        RegardError, match=r"about 310\.0 MB, 200\.0 MB are the most: leave out layers \(layers=, --html-"
    ):
        check_page_size(310_000_000, 200_000_000)
