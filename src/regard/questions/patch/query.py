"""What may be asked about patches: by the command, a server and the library."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.query import Called, Progress, option
from regard.errors import RegardError
from regard.questions.outcome import OutcomeQuery

if TYPE_CHECKING:
    from regard.models.model import Model
    from regard.questions.patch.answer import PatchSweep
    from regard.trace.trace import PairTrace, Trace

WHATS = ("hidden_states", "head_outputs", "values", "weights", "feed_forward")
BYS, PARTS = ("positions", "heads"), ("encoder", "decoder", "cross")


@dataclass(frozen=True, kw_only=True)
class PatchQuery(OutcomeQuery):
    """Patch activations of a clean text into the run of a corrupted text, and measure the effect.

    regard patches each layer and position, or each head, in turn. The outcome is a next token's probability (--to),
    or the cosine of a word to its vector in the clean text (--word).
    """

    summary: ClassVar[str] = "Patch activations between two texts and measure the effect."
    texts: ClassVar[tuple[str, str]] = ("CLEAN CORRUPTED", "Two texts that differ in a word.")

    what: str = option("Patch these activations.", "hidden_states", among=WHATS)
    by: str | None = option(
        "Patch each position or each head.", among=BYS, shown="heads if --what has them, else positions"
    )
    at: tuple[str, ...] = option(
        "Use this position: a word of the text or a token number.", (), metavar="WORD", shown="all"
    )
    layers: tuple[int, ...] | None = option("Use these layers only, counted from 0.", metavar="N,N-N", shown="all")
    noising: bool = option("Patch the corrupted text's activations into the clean run.", False)
    part: str | None = option("Select the attention of an encoder-decoder.", among=PARTS)

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
        from regard.explain.wording import place_in
        from regard.questions.patch.sweep import patch_sweep

        clean, corrupted = (each.sides[0].text for each in traces)
        targets = (traces[0].sides[-1].text, traces[1].sides[-1].text) if model.pairs else None
        named: dict[str, Any] = {"what": self.what, "by": self.by, "part": self.part}
        side = traces[0].sides[0 if self.part == "encoder" else -1]
        at = [int(each) if each.isdecimal() and isinstance(place_in(side, each), int) else each for each in self.at]
        outcome = self.outcome(model, traces[0], probability)
        return patch_sweep(
            model, clean, corrupted, outcome, layers=self.layers, at=at or None,
            direction="noising" if self.noising else "denoising", targets=targets, progress=progress, **named,
        )  # fmt: skip
