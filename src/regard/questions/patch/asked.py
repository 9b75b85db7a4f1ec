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
    """Patch a corrupted text's run with a clean one's at every layer and place or head, and measure each patch."""

    texts: ClassVar[tuple[str, str]] = ("CLEAN CORRUPTED", "Two texts that differ in a word.")
    ranked: ClassVar[bool] = False  # a grid of all

    what: str = option(f"What is patched: {', '.join(WHATS)}.", "hidden_states", metavar="WHAT", among=WHATS)
    by: str | None = option("A patch for each of the positions, or of the heads.", metavar="BY", among=BYS)
    at: tuple[str, ...] = option("Patch at this word alone; may be given again.", (), metavar="WORD")
    layers: tuple[int, ...] | None = option("Patch these layers alone.", metavar="N,N-N")
    noising: bool = option("Put the corrupted text's into the clean one, not back.", False)
    part: str | None = option("Of an encoder-decoder: encoder, decoder or cross.", among=PARTS)

    def check(self, texts: int, targets: int = 0, *, called: Called = str) -> None:
        """Refuse what can be refused without a model."""
        if texts != 2:
            raise RegardError(f"given {texts} texts, needs two: regard patch CLEAN CORRUPTED --word W")
        super().check(texts, targets, called=called)
        self.check_outcome(called)

    def check_default(self, texts: Sequence[str], *, called: Called = str) -> None:
        """Refuse texts of different lengths, as the default model's tokenizer counts them."""
        from tokenizers import Tokenizer  # without transformers, which would import torch

        from regard.model_files.folder import default_place
        from regard.text.tokens import unequal_lengths

        if self.at:
            return
        tokenizer = Tokenizer.from_file(str(default_place() / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        run, source = texts if self.noising else reversed(texts)
        counts = [len(tokenizer.encode(text).ids) for text in (run, source)]
        if counts[0] != counts[1]:
            raise unequal_lengths(run, counts[0], source, counts[1])

    def answer(
        self, model: "Model", traces: "Sequence[Trace | PairTrace]", progress: Progress | None = None
    ) -> "PatchSweep":
        """Answer it of the texts of two traces: the clean one's and the corrupted one's.

        Raises:
            RegardError: texts that cannot be aligned, or a model that cannot be asked this.
        """
        from regard.explain.causes.outcomes import probability

        clean, corrupted = (each.sides[0].text for each in traces)
        targets = (traces[0].sides[-1].text, traces[1].sides[-1].text) if model.pairs else None
        named: dict[str, Any] = {"what": self.what, "by": self.by, "part": self.part}
        outcome = self.outcome(model, traces[0], probability)
        return model.patch_sweep(
            clean, corrupted, outcome, layers=self.layers, at=list(self.at) or None,
            direction="noising" if self.noising else "denoising", targets=targets, progress=progress, **named,
        )  # fmt: skip
