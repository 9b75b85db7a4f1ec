"""Declare the options of `regard steps`: all numbers of a word in a head."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from regard.display.query import Progress, Query, option

if TYPE_CHECKING:
    from regard.models.source import Source
    from regard.questions.steps.answer import Steps


@dataclass(frozen=True, kw_only=True)
class StepsQuery(Query):
    """Show how a head computes a word's context vector: scores, scaled scores, weights, weighted values, sum."""

    summary: ClassVar[str] = "Show all numbers of a word in a head, step by step."
    served: ClassVar[bool] = False
    texts: ClassVar[tuple[str, str]] = ("TEXT", "Your text.")
    single: ClassVar[bool] = True
    inputs: ClassVar[tuple[str, ...]] = ("model", "open_file")
    files: ClassVar[tuple[str, ...]] = ("figure", "html of traces", "json", "save")
    saved_alone: ClassVar[bool] = True
    full: ClassVar[bool] = True

    word: str | None = option(needed="a word of the text")
    layer: int = option(default=0)
    head: int = option(default=0)

    def run(self, source: "Source", progress: Progress) -> "Steps":
        """Read the text, and list the steps."""
        from regard.questions.steps.answer import steps

        assert self.word is not None  # the check of the query asks for it
        return steps(source.read_one("steps"), self.word, self.layer, self.head)
