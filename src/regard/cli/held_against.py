"""What a word is held against: neutral sentences of one's own (--control), and static vectors (--static)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from regard.cli.selection import Selection
from regard.errors import RegardError
from regard.files import check_readable, read_regular
from regard.text.neutral_sentences import LEAST, SENTENCES, lacking

if TYPE_CHECKING:
    from torch import Tensor

    from regard.explain.texts.summary import Summary
    from regard.trace.trace import PairTrace, Trace

OF_MODEL = ("model", "learned")  # the model's token embeddings instead of a file; the second is the old name


@dataclass(frozen=True)
class ControlFile:
    """given: a file with one sentence a line; None for the sentences that come with the package."""

    given: Path | None

    def check(self, chosen: Selection) -> None:
        """Refuse sentences for no word beside others."""
        if self.given is not None and not chosen.reference_words:
            raise RegardError("--control needs --word and --compare: pass all three")

    def sentences(self, chosen: Selection) -> Sequence[str]:
        """The sentences, read before anything is loaded. Raises RegardError for a file that is none of these."""
        if self.given is None:
            return SENTENCES
        return read_sentences(self.given, chosen.word or "")


@dataclass(frozen=True)
class StaticVectors:
    """given: a file of word2vec or GloVe, "model", or None for no static vectors. found: the vectors of a file."""

    given: str | None
    found: "Mapping[str, Tensor]" = field(default_factory=dict)

    def check(self, chosen: Selection) -> None:
        """Refuse static vectors of no words, and a file that cannot be read."""
        if self.given is not None and not chosen.reference_words:
            raise RegardError("--static needs --word and --compare: it compares words' static vectors")
        if self.given not in (None, *OF_MODEL):
            check_readable(Path(self.given), "--static")

    def read(self, chosen: Selection) -> "StaticVectors":
        """Read the vectors of a file, where there is one, before a model is loaded."""
        if self.given in (None, *OF_MODEL):
            return self
        from regard.text.word_vectors import read_static

        found = read_static(Path(self.given), [chosen.word or "", *chosen.reference_words])
        if chosen.word not in found:
            raise RegardError(f"--static {self.given}: it has no vector for {chosen.word!r}")
        return replace(self, found=found)

    def beside(
        self, seen: "Summary", traces: "Sequence[Trace] | Sequence[PairTrace]", references: "Sequence[Trace]"
    ) -> "Summary":
        """The summary of traces with the static vectors of its word and of references, traces of a word each."""
        if self.given is None:
            return seen
        from regard.explain.vectors.static_words import learned_words, static_words

        word, words, vectors, name = seen.word or "", [each.text for each in references], self.found, self.given
        if self.given in OF_MODEL:
            first = traces[0].sides[0]
            vectors, name = learned_words(word, first, references), f"the token embeddings of {first.status.model}"
        return replace(seen, static=static_words(vectors, word, words, name))


def read_sentences(file: Path, word: str) -> list[str]:
    """Read neutral sentences from a file, one a line; blank lines and repeated ones are left out."""
    what = f"--control {str(file)!r}"
    try:
        lines = read_regular(file, "--control").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise RegardError(f"{what} is no text in UTF-8: needs one sentence a line") from None
    for number, line in enumerate(lines, 1):
        if line.strip() and (lacks := lacking(line.strip(), word)):
            raise RegardError(f"{what}: line {number}, {lacks}")
    found = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if len(found) < LEAST:
        raise RegardError(f"{what}: {len(found)} different sentences, needs {LEAST} or more, one a line")
    return found
