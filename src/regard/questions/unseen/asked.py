"""What may be asked about tokens that nobody looks at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from regard.display.asked import Asked, Called, Progress, option
from regard.errors import RegardError

if TYPE_CHECKING:
    from regard.models.model import Model
    from regard.questions.unseen.answer import Unseen
    from regard.trace.trace import PairTrace, Trace


@dataclass(frozen=True, kw_only=True)
class UnseenAsked(Asked):
    """Show which tokens of a text no other token looks at: what each gets from the others, all heads together."""

    texts: ClassVar[tuple[str, str]] = ("TEXT", "One text.")
    paired: ClassVar[bool] = False

    least: float = option("Count a token as looked at from this weight on, the mean of all heads.", 0.05, metavar="W")

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model."""
        super().check(texts, targets, called=called)
        if not 0 < self.least <= 1:
            raise RegardError(f"{called('least')}: given {self.least:g}, needs more than 0 and 1 at most: a weight")
        if texts != 1:
            raise RegardError(f"given {texts} texts, needs one: its tokens are looked at by those of the same text")

    def check_pairs(self, name: str) -> None:
        """Refuse encoder-decoders: who looks at a text there is the target as well."""
        raise RegardError(f"unseen: {name} is an encoder-decoder, it is for models of one stack")

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "Unseen":
        """Answer it. Raises RegardError for encoder-decoders, and what `unseen` raises."""
        from regard.questions.unseen.answer import unseen

        (trace,) = traces
        if model.pairs:
            self.check_pairs(model.name)
        return unseen(trace, self.least, progress=progress)  # type: ignore[arg-type]  # of one stack
