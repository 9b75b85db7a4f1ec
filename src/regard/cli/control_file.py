"""Neutral sentences of one's own (--control): what texts do to a word is held against them."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.cli.selection import Selection
from regard.errors import RegardError
from regard.text.neutral_sentences import SENTENCES, read_sentences

if TYPE_CHECKING:
    from regard.models.model import Model
    from regard.trace.trace import Trace


@dataclass(frozen=True)
class ControlFile:
    """given: a file with one sentence a line; None for the sentences that come with the package."""

    given: Path | None

    def check(self, chosen: Selection) -> None:
        """Refuse sentences for no word beside others."""
        if self.given is not None and not chosen.reference_words:
            raise RegardError("--control needs --word and --with: the word is held against it beside reference words")

    def sentences(self, chosen: Selection) -> Sequence[str]:
        """The sentences, read before anything is loaded. Raises RegardError for a file that is none of these."""
        if self.given is None:
            return SENTENCES
        return read_sentences(self.given, chosen.word or "", "--control")


def traced_control(
    model: "Model", traces: Sequence[Any], chosen: Selection, sentences: Sequence[str]
) -> "list[Trace] | None":
    """The sentences with the word, traced; None where there are no reference words."""
    from regard.models.control import trace_control

    if chosen.word is None or not chosen.reference_words:
        return None
    return trace_control(model, traces, chosen.word, sentences)
