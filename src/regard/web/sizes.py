"""Estimate a page's size before anything is computed, and refuse what no browser would open."""

from collections.abc import Sequence

from regard.checks import megabytes
from regard.errors import RegardError, control_name
from regard.models.windows import WindowedTrace, sides
from regard.trace.layer_subset import call_numbers
from regard.trace.trace import PairTrace, Trace
from regard.web.numbers import vector_bytes_in_page
from regard.web.page import Page
from regard.web.steps import entering_of, output_of, steps_bytes, value_of

LIMIT = 200_000_000  # bytes of a file: browsers are slow to open more


def estimated_size(traces: Sequence[Trace | PairTrace | WindowedTrace], page: Page) -> int:
    """How many bytes the numbers of a page take at most, in base64; biases, masks and overviews aside."""
    total = 0
    for side in (side for trace in traces for side in sides(trace)):
        for maps in (side.attention, side.cross):
            for call in call_numbers(maps):
                if page.layers is not None and call[0] not in page.layers:
                    continue
                if maps[call].given is not None:
                    heads, length, size = maps[call].shape
                    total += 4 * (heads if page.heads is None else len(page.heads)) * length * size
                    continue
                query, key = (tuple(tensor.shape[1:]) for tensor in (maps[call].query, maps[call].key))
                if page.heads is not None:
                    query = (len(page.heads), *query[1:])
                    key = (min(len(page.heads), key[0]), *key[1:])
                total += vector_bytes_in_page(query, page.encoding) + vector_bytes_in_page(key, page.encoding)
                total += 8 * query[0] * query[1]
    return total * 4 // 3 + steps_size(traces, page)


def steps_size(traces: Sequence[Trace | PairTrace | WindowedTrace], page: Page) -> int:
    """How many bytes of it are what Steps need."""
    total = 0
    for side in (side for trace in traces for side in sides(trace)):
        for call in call_numbers(side.attention):
            value = value_of(side.values, call)
            there = all(numbers is None or call[0] in numbers for numbers in (page.layers, page.steps_of))
            if there and value is not None:
                output = output_of(side.attention_outputs, call)
                total += steps_bytes(value, output, entering_of(side, call[0]), page.encoding, page.tokens)
    return total * 4 // 3


def check_page_size(size: int, limit: int | None) -> None:
    """Raise RegardError where a page would be larger than it may be."""
    if limit is not None and size > limit:
        usual = (
            "leave out layers (layers=, --html-with layers=0,3-5), heads (heads=) or steps, or raise the limit (limit=)"
        )
        smaller = control_name("page", usual)
        raise RegardError(f"page: it would have about {megabytes(size)}, {megabytes(limit)} are the most: {smaller}")
