"""Declare the options of `regard translate`: a translation, and how its words align."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from regard.display.query import Progress, Query, option
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.source import Source


@dataclass(frozen=True, kw_only=True)
class TranslateQuery(Query):
    """Translate texts with an encoder-decoder and show the alignment in its cross-attention."""

    summary: ClassVar[str] = "Translate texts and show how the words align."
    served: ClassVar[bool] = False
    inputs: ClassVar[tuple[str, ...]] = ("model",)
    needs_model: ClassVar[str] = (
        "pass an encoder-decoder, from the Hub (--model Helsinki-NLP/opus-mt-en-fr) "
        "or your own (regard train --pairs FILE --out runs/translator)"
    )
    files: ClassVar[tuple[str, ...]] = ("figure", "html of traces", "csv", "json", "save")
    saved_alone: ClassVar[bool] = True
    full: ClassVar[bool] = True
    names_targets: ClassVar[bool] = True

    layer: int | None = option(shown="the two layers whose alignments agree most")
    head: int | None = option(shown="the mean of all heads")
    top: int = option(default=5, least=1)

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Translate the texts, and look at the alignment."""
        from regard.questions.alignment import Translation
        from regard.questions.see.answer import seen

        reading = source.read()
        if not reading.generated:
            raise RegardError(f"translate: {reading.model.name} is not an encoder-decoder: it reads a single text")
        return seen(
            reading.traces, layer=self.layer, head=self.head, kind=Translation, top=self.top, names=reading.names,
            generated=reading.generated,
        )  # fmt: skip
