"""Declare the options of `regard see`: a word or all tokens of texts, or images."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.checks import refuse_both
from regard.display.query import Called, Progress, Query, option
from regard.errors import RegardError
from regard.files import read_regular
from regard.lazy import from_above
from regard.text.neutral_sentences import MIN_SENTENCES, SENTENCES, slot_problem

if TYPE_CHECKING:
    from regard.display.answer import Answer
    from regard.models.source import Source


@dataclass(frozen=True, kw_only=True)
class SeeQuery(Query):
    """Show what self-attention does to a word, or to all tokens, of your texts.

    Pass --layer or --head to show single heads. Pass --image to show where a vision model looks.
    """

    summary = "Show what attention does to a word, or to all tokens of texts."
    heading = "Look at attention"
    examples = (
        'see "A man on a river bank." "Money in a bank." --word bank',
        'see "A man on a river bank." --html look.html',
    )
    served = False
    inputs = ("targets", "seconds", "model", "window", "stride", "open_file", "images", "chat")
    files = ("figure of texts", "csv", "json", "html of traces", "save parts")
    full = True
    names_targets = True

    word: str | None = option(shown="an overview of all tokens")
    compare: tuple[str, ...] = option(default=())
    control: Path | None = option(shown="39 English sentences")
    layer: int | None = option(shown="all")
    head: int | None = option(shown="all")
    top: int = option(default=5, least=1)
    logit_lens: bool = option(default=False)
    remove: str | None = option(among=("blank", "mean", "blur"))

    @property
    def references(self) -> list[str]:
        """Return the reference words of --compare without duplicates."""
        return list(dict.fromkeys(word.strip() for word in ",".join(self.compare).split(","))) if self.compare else []

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Check the options of `regard see` that can be checked without a model."""
        super().check(texts, targets, called=called)
        if self.compare and self.word is None:
            raise RegardError(f"{called('compare')} needs {called('word')}: it compares that word with others")
        if not all(self.references):
            words = ",".join(self.compare)
            raise RegardError(f"{called('compare')} {words!r}: expected words separated by commas, but one is empty")
        if self.control is not None and not self.compare:
            raise RegardError(f"{called('control')} needs {called('word')} and {called('compare')}: pass all three")

    def check_source(self, source: "Source", verb: str, outputs: Any) -> None:
        """Check that the texts, images and options can be combined."""
        if source.images:
            refuse_both("--image", {
                "--compare": self.compare, "--control": self.control, "--logit-lens": self.logit_lens,
                "--shape": outputs.shape != "slide",
            })  # fmt: skip
            if self.word is not None and not source.texts:
                raise RegardError("--image and --word: an image has no words: pass a TEXT too")
            if source.model is None:
                raise RegardError("--image needs --model: a model that reads images, which the default model does not")
        elif self.remove is not None:
            raise RegardError("--remove: needs --image: it ablates regions of the image")
        if self.compare and source.open_file is not None:
            raise RegardError("--compare needs the model, to read its words: it cannot be used with --open")
        super().check_source(source, verb, outputs)

    def listed(self, answer: "Answer", *, full: bool) -> int | None:
        """Return the number of image patches to list, or None for texts, whose tables already follow --top."""
        return self.top if answer.format == "regard look" else None

    def run(self, source: "Source", progress: Progress) -> "Answer":
        """Trace the texts or images and return the answer about them."""
        if source.images:
            looked: Any = from_above("looked")
            reading, fill = source.read(), self.remove
            return looked(reading.traces, self.layer, self.head, self.word, remove=fill and (reading.model, fill))
        sentences = SENTENCES if self.control is None else read_sentences(self.control, self.word or "")
        from regard.questions.see.answer import seen_next_to_words

        return seen_next_to_words(
            source.read(needs_model=self.logit_lens), self.word, self.references, sentences,
            lens=self.logit_lens, layer=self.layer, head=self.head, top=self.top,
        )  # fmt: skip


def read_sentences(file: Path, word: str) -> list[str]:
    """Read neutral sentences with the word from a file, one per line. Skip blank and repeated lines."""
    option = f"--control {str(file)!r}"
    try:
        lines = read_regular(file, "--control").decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise RegardError(f"{option} is not UTF-8 text: write one sentence per line") from None
    for n, line in enumerate(lines, 1):
        if line.strip() and (lacks := slot_problem(line.strip(), word)):
            raise RegardError(f"{option}: line {n}, {lacks}")
    sentences = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if (count := len(sentences)) < MIN_SENTENCES:
        raise RegardError(f"{option}: {count} different sentences, expected {MIN_SENTENCES} or more, one per line")
    return sentences
