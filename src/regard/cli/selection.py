"""What a verb looks at: a layer, a head, a word, words to compare it with; and how many tokens it names."""

from dataclasses import dataclass

from regard.errors import RegardError


@dataclass(frozen=True)
class Selection:
    """layer, head: None for all. references: as --compare was given them, separated by commas."""

    layer: int | None = None
    head: int | None = None
    top: int = 5
    word: str | None = None
    references: str | None = None

    def check(self, *, opened: bool = False) -> None:
        """Refuse what can be refused without a model. opened: whether saved traces are looked at, without it."""
        if self.top < 1:
            raise RegardError(f"--top: given {self.top}, needs 1 or more")
        if self.word is not None and not self.word.strip():
            raise RegardError("--word is empty: give a word of the text")
        if self.references is not None and self.word is None:
            raise RegardError("--compare needs --word: it compares that word with others")
        if self.references is not None and opened:
            raise RegardError("--compare needs the model, to read its words: it cannot be used with --open")
        if not all(self._references()):
            raise RegardError(f"--compare {self.references!r}: needs words separated by commas, one is empty")

    def needed_word(self) -> str:
        """The word, of a verb that cannot do without. Raises RegardError where none is given, or a blank one."""
        if self.word is None or not self.word.strip():
            raise RegardError("--word is needed: a word of the text")
        return self.word

    @property
    def reference_words(self) -> list[str]:
        """The words to compare with, each once, in the order given."""
        return list(dict.fromkeys(self._references()))

    def _references(self) -> list[str]:
        return [] if self.references is None else [each.strip() for each in self.references.split(",")]
