"""Put the page of any attention together: of maps, recorded calls or tensors, with labels, and without a trace."""

from collections.abc import Iterable, Sequence
from typing import Any

from regard.attention.head_map import of_heads
from regard.checks import chosen_numbers
from regard.errors import RegardError
from regard.text.tokens import Token
from regard.trace.any_attention import labelled, named_maps
from regard.web.call import CallName, call_data
from regard.web.numbers import ENCODINGS, Encoding, NumberStore, vector_bytes_in_page
from regard.web.page import Page, status_lines, text_data
from regard.web.score_rules import DENSE
from regard.web.sizes import check_page_size


def attention_page(
    attention: Any, tokens: Iterable[Any] | None, key_tokens: Iterable[Any] | None, batch: int, *, title: str | None,
    findings: Sequence[str] | None, layers: Sequence[int] | None, heads: Sequence[int] | None, numbers: Encoding,
    limit: int | None,
) -> Page:  # fmt: skip
    """Put the page of any attention together. Arguments and errors are those of `save_page`."""
    if numbers not in ENCODINGS:
        raise RegardError(f"numbers: given {numbers!r}, needs {' or '.join(map(repr, ENCODINGS))}")
    layers, heads = chosen_numbers("layer", layers), chosen_numbers("head", heads)
    tokens, key_tokens = (
        each if each is None or isinstance(each, str) else list(each) for each in (tokens, key_tokens)
    )
    shown = [labelled(each, tokens, key_tokens, batch) for each in named_maps(attention, layers)]
    maps, size = [of_heads(each.weights, heads, each.layer) for each in shown], 0
    for each, weights in zip(shown, maps, strict=True):  # what is too large is refused before anything is computed
        count, length, width = weights.shape
        if weights.given is None:
            for vectors in (weights.query, weights.key):
                size += vector_bytes_in_page(tuple(vectors.shape[1:]), numbers)
        elif count * length * width > DENSE:
            raise RegardError(
                f"page: {each.name or 'the map'} has {count * length * width:,} weights without queries and keys, "
                f"{DENSE:,} are the most: choose heads (heads=), or draw it with regard.plot"
            )
        else:
            size += 4 * count * length * width
        size += 8 * count * length
    check_page_size(size * 4 // 3, limit)
    page = Page(title or shown[0].name or "attention weights", findings or (), layers=layers, heads=heads)
    page.numbers = NumberStore(numbers)
    texts: dict[tuple[str, ...], int] = {}
    calls: dict[int, int] = {}
    for each, weights in zip(shown, maps, strict=True):
        both = []
        for labels, positions in ((each.queries, weights.shape[1]), (each.keys, weights.shape[2])):
            own = labels or tuple(map(str, range(positions)))
            if own not in texts:
                text, found = " ".join(own), []
                for n, label in enumerate(own):
                    start = sum(len(one) + 1 for one in own[:n])
                    found.append(Token(n, label, start, start + len(label), n, False, text))
                texts[own] = page.add_text(text_data(f"labels {len(texts) + 1}", text, found))
            both.append(texts[own])
        name = CallName(each.layer, calls.get(each.layer, 0), both[0], both[1], path=each.name or "attention")
        calls[each.layer] = name.nth + 1
        chosen = None if weights.shape[0] == each.weights.shape[0] else heads
        page.add_call(call_data(weights, name, page.numbers, head_numbers=chosen))
    page.status = status_lines([], page)
    return page
