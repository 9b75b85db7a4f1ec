"""An exercise whose answer checks itself, in a notebook's cell and in `regard lesson N --exercises`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Exercise:
    """A task: check takes an answer and says whether it is right, and what it leads to. `...` is no answer yet."""

    check: Callable[[Any], tuple[bool, str]]
    answer: Any = ...

    def verdict(self, answer: Any) -> tuple[bool, str]:
        """Whether an answer is right, and a sentence that says so. An answer that check cannot take is wrong."""
        if answer is ...:
            return False, "Not answered yet."
        try:
            right, found = self.check(answer)
        except Exception as error:  # whatever somebody types
            right, found = False, f"{type(error).__name__}: {error}"
        return bool(right), f"{'Right' if right else 'Not yet'}: {found}"

    def __repr__(self) -> str:
        return self.verdict(self.answer)[1]
