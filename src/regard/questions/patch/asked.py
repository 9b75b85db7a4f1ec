"""What may be asked about patches: by the command, a server and the library."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.asked import Called, Progress, option
from regard.errors import RegardError
from regard.questions.outcome import OutcomeAsked

if TYPE_CHECKING:
    from regard.models.model import Model
    from regard.questions.patch.answer import PatchSweep
    from regard.trace.trace import PairTrace, Trace

WHATS = ("hidden_states", "head_outputs", "values", "weights", "feed_forward")
BYS, PARTS = ("positions", "heads"), ("encoder", "decoder", "cross")


@dataclass(frozen=True, kw_only=True)
class PatchAsked(OutcomeAsked):
    """Run a corrupted text, put what a clean text's run had into it, and measure what that changes.

    One patch is made for each layer and place, or head. The probability of a next token is measured (--to), or the
    cosine of a word to what it is in the clean text (--word).
    """

    texts: ClassVar[tuple[str, str]] = ("CLEAN CORRUPTED", "Two texts that differ in a word.")
    ranked: ClassVar[bool] = False  # a grid of all

    what: str = option("What is put from one run into the other.", "hidden_states", among=WHATS)
    by: str | None = option("Give a number to each of these.", among=BYS, shown="heads, where --what has them")
    at: tuple[str, ...] = option("At a word of the text, or a token's number.", (), metavar="WORD", shown="all")
    layers: tuple[int, ...] | None = option("These layers alone, counted from 0.", metavar="N,N-N", shown="all")
    noising: bool = option("Run the clean text, and put into it what the corrupted one had.", False)
    part: str | None = option("Which part of an encoder-decoder.", among=PARTS)

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model."""
        if texts != 2:
            raise RegardError(f"given {texts} texts, needs two: regard patch CLEAN CORRUPTED --word W")
        super().check(texts, targets, called=called)
        self.check_outcome(called)

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "PatchSweep":
        """Answer it of the texts of two traces: the clean one's and the corrupted one's."""
        from regard.explain.causes.outcomes import probability
        from regard.explain.places import place_in

        clean, corrupted = (each.sides[0].text for each in traces)
        targets = (traces[0].sides[-1].text, traces[1].sides[-1].text) if model.pairs else None
        named: dict[str, Any] = {"what": self.what, "by": self.by, "part": self.part}
        side = traces[0].sides[0 if self.part == "encoder" else -1]
        at = [int(each) if each.isdecimal() and isinstance(place_in(side, each), int) else each for each in self.at]
        outcome = self.outcome(model, traces[0], probability)
        return model.patch_sweep(
            clean, corrupted, outcome, layers=self.layers, at=at or None,
            direction="noising" if self.noising else "denoising", targets=targets, progress=progress, **named,
        )  # fmt: skip
