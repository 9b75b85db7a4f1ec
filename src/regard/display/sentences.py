"""Write an answer's sentences: templates with conditions, filled with the answer's numbers.

A question has one table of groups. A group is about one fact and lists its templates, the most specific first:

    TABLE = [
        [("“{word}” attends most to “{key}” ({weight}) in {head}.", lambda n: n["weight"] >= 0.3),
         ("No token receives 0.30 or more from “{word}”. The largest weight is {weight}.", None)],
    ]
    sentences(TABLE, {"word": "bank", "key": "river", "weight": 0.831, "head": "layer 0, head 4"})

A template fits if the answer has every number that it names and its condition holds.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from regard.explain.wording import capital, fixed, listed, signed

MAX_SENTENCES = 3  # of an answer
MAX_WORDS = 25  # of a sentence

Numbers = Mapping[str, Any]
Template = tuple[str, Callable[[Numbers], Any] | None]


class _Writer(string.Formatter):
    """Write a fraction or cosine with two decimals, `:+` with a sign, `:n` a number of any size, `:%` a percentage."""

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, bool) or not isinstance(value, float | int):
            return listed(value) if isinstance(value, list) else format(value, format_spec)
        if format_spec == "%":
            return "<1%" if 0 < value < 0.005 else f"{value:z.0%}".replace("-", "−")
        if format_spec == "+":
            return signed(float(value))
        if isinstance(value, int):
            return f"{value:,}"
        return fixed(value, 2, unbounded=format_spec == "n") if format_spec in ("", "n") else format(value, format_spec)


def sentences(table: Sequence[Sequence[Template]], numbers: Numbers, most: int = MAX_SENTENCES) -> list[str]:
    """Return the first template that fits of each group, filled in; at most so many sentences."""
    written = []
    for group in table:
        for template, holds in group:
            names = [name for _, name, _, _ in string.Formatter().parse(template) if name]
            if all(numbers.get(name) is not None for name in names) and (holds is None or holds(numbers)):
                written.append(capital(_Writer().vformat(template, (), numbers)))
                break
    return written[:most]
