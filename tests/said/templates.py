"""Parse every sentence by its own template, and hold what it says against the numbers of the same answer.

A template knows one sentence: a pattern with named groups, and a function that asserts of these groups and the numbers
what the sentence claims. A sentence that no template parses fails, and so does one that two parse. Nothing here or
beside it imports a renderer (what draws in `regard.display`, `regard.web`, `regard.server`, `regard.cli`): only
sentences and numbers.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Groups = Mapping[str, str | None]


@dataclass(frozen=True)
class Template:
    """One kind of sentence. pattern: of the whole sentence. holds(groups, numbers): asserts what it claims."""

    name: str
    pattern: str
    holds: Callable[[Groups, Any], None]


def hold(sentences: Iterable[str], numbers: Any, templates: Sequence[Template]) -> Counter[str]:
    """Hold each sentence against the numbers; count how often each template spoke.

    Raises AssertionError where no template or more than one parses a sentence, or where it is not true.
    """
    spoke: Counter[str] = Counter()
    for sentence in sentences:
        parsed = [(each, match) for each in templates if (match := re.fullmatch(each.pattern, sentence))]
        assert parsed, f"no template parses this sentence: {sentence!r}"
        assert len(parsed) == 1, f"{[each.name for each, _ in parsed]} all parse this sentence: {sentence!r}"
        template, match = parsed[0]
        try:
            template.holds(match.groupdict(), numbers)
        except AssertionError as error:
            raise AssertionError(f"not true of its numbers ({template.name}): {sentence!r}\n{error}") from None
        spoke[template.name] += 1
    return spoke


def shows(printed: str | None, value: float) -> None:
    """Assert that a printed figure is the value, rounded to the digits printed: 0.31, 1,204, 12 %, +0.5, <0.01."""
    assert printed is not None
    assert reads(printed, value), f"{printed!r} is printed, the number is {value}"


def reads(printed: str | None, value: float) -> bool:
    """Whether a printed figure is the value, rounded to the digits printed, and reads as 0 or 1 only where it is."""
    if printed is None:
        return False
    plain = printed.replace(",", "").replace("−", "-").replace(" ", "")
    part = plain.endswith("%")
    if plain[0] in "<>":
        end, digits = float(plain[1:]), len(plain.partition(".")[2])
        return (value < end if plain[0] == "<" else value > end) and round(value, digits) in (0, 1, -1)
    plain = plain.removesuffix("%")
    digits = len(plain.partition(".")[2])
    want = f"{value * 100 if part else value:.{digits}f}"
    want = want.lstrip("-") if float(want) == 0 else want
    return plain.removeprefix("+" if float(want) > 0 else "") == want


def largest(name: str, among: Mapping[str, float]) -> None:
    """Assert that nothing among the values is larger than what is named (ties may be named in any order)."""
    assert among[name] >= max(among.values()), f"{name!r} has {among[name]}, the most has {max(among.values())}"
