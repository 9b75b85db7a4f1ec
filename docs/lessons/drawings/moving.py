"""Numbers that a reader moves on the site: docs/moving.js computes them there. Elsewhere a line says what moves."""

import html
import json
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Moving:
    """A div that docs/moving.js fills: kind is "temperature", "query" or "mask", numbers what it computes from."""

    kind: str
    shows: str
    numbers: dict[str, Any]

    def __repr__(self) -> str:
        return f"[on the site you can move this: {self.shows}]"

    def _repr_html_(self) -> str:
        given = html.escape(json.dumps(self.numbers))
        return f'<div class="moving" data-kind="{self.kind}" data-numbers="{given}">{html.escape(repr(self))}</div>'


def temperature(names: list[str], products: list[float], divisor: float, *, query: str) -> Moving:
    """A slider for what the dot products of a query are divided by; divisor: √d_k, where it begins."""
    numbers = {"names": names, "products": products, "divisor": divisor, "query": query}
    return Moving("temperature", f"the divisor of the scores of “{query}”", numbers)


def plane_query(names: list[str], query: list[float], key: list[list[float]], value: list[list[float]]) -> Moving:
    """A query (2,) to drag among keys (n, 2): scores q·k / √2, weights, and the mixture of values (n, d_v)."""
    return Moving("query", "the query", {"names": names, "query": query, "key": key, "value": value})


def mask(names: list[str], scores: list[list[float]]) -> Moving:
    """The weights of (n, n) scores with the causal mask, which a box switches off and on."""
    return Moving("mask", "the causal mask", {"names": names, "scores": scores})
