"""Hold what the logit lens reads at positions of texts: the predictions of each layer."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.answer import Read, TracesAnswer
from regard.display.sentences import MAX_SENTENCES, Template, sentences
from regard.explain.frames import Row
from regard.explain.logits.logit_lens import LogitLens
from regard.explain.texts.summary import Summary, summarise
from regard.explain.wording import numbered
from regard.questions.lens import panels
from regard.text.quoting import quoted
from regard.text.tokens import shortened

if TYPE_CHECKING:
    from regard.models.model import Model

TABLE: list[list[Template]] = [
    [
        ("{place}, the model predicts {token} (probability {probability}), but the last state ranks it number {rank}.",
         None),
        ("{place}, the model predicts {token} (probability {probability}), its first choice from layer {settled} on.",
         None),
        ("{place}, the model predicts {token} (probability {probability}), its first choice in every layer.", None),
    ]
]  # fmt: skip
LONG = 60  # characters of a text in a title


@dataclass(frozen=True, eq=False, repr=False)
class Lens(TracesAnswer):
    """Predictions read from each hidden state. summary: of the texts or targets, with its `logit_lenses`; side."""

    format: ClassVar[str] = "regard lens"
    panels = panels.of_lens

    summary: Summary
    side: str = "text"

    def title(self) -> str:
        """Of which text."""
        more = len(self.summary.texts) - 1
        text = shortened(self.summary.texts[0], LONG) + (f" (and {more} more)" if more else "")
        return f"Logit lens: predictions of each layer, {text}"

    def findings(self) -> list[str]:
        """Say for each place what the model predicts, and from which layer on."""
        lenses = self.summary.logit_lenses[:MAX_SENTENCES]
        return [sentence for lens in lenses for sentence in sentences(TABLE, _numbers(lens, self.summary, self.side))]

    def rows(self) -> list[Row]:
        """One row a place, state and candidate, the likeliest first."""
        labels, found = self.summary.labels, self.summary.logit_lenses
        return [{self.side: labels[each.text], **row} for each in found for row in each.rows()]

    def data(self) -> dict[str, object]:
        """Every place with all its states."""
        return {"side": self.side, "logit_lenses": [asdict(each) for each in self.summary.logit_lenses]}


def lens(model: "Model", traces: Sequence[Any], word: str | None = None, *, top: int = 5) -> Lens:
    """Read each layer at the places where it is worth to see what a model would say, as `regard see --logit-lens` does.

    traces: of texts, or of texts and targets, of this model. word: to be followed. top: how many candidates.
    """
    summary = summarise(traces, word, top=top, lens_of=model)
    own, side = (summary, "text") if summary.target is None else (summary.target.summary, "target")
    return Lens(own, side, traces=traces, about=Read.of(*traces))


def _numbers(lens: LogitLens, summary: Summary, side: str) -> dict[str, object]:
    """Collect the numbers of a place's sentence."""
    text = f" in {side} {summary.labels[lens.text]}" if len(summary.texts) > 1 else ""
    behind = [n for n, layer in enumerate(lens.layers) if layer.rank > 1]
    settled = behind[-1] if behind else None  # layer that follows the last state with another likeliest token
    return {
        "place": f"{'After' if lens.after else 'In place of'} {numbered(summary.tokens[lens.text], lens.token)}{text}",
        "token": quoted(lens.final.text), "probability": lens.final.probability, "settled": settled,
        "rank": lens.layers[-1].rank if settled == len(lens.layers) - 1 else None,
    }  # fmt: skip
