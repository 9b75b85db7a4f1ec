"""Hold what the logit lens reads at places of texts, and read it: what a model would say after each of its layers."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.answer import Read, TracesAnswer
from regard.explain.frames import Row
from regard.explain.logits.logit_lens import LogitLens
from regard.explain.texts.summary import Summary, summarise
from regard.explain.wording import number, numbered
from regard.questions.lens import panels
from regard.text.quoting import quoted
from regard.text.tokens import shortened

if TYPE_CHECKING:
    from regard.models.model import Model

LONG = 60  # characters of a text in a title


@dataclass(frozen=True, eq=False, repr=False)
class Lens(TracesAnswer):
    """What each state would say. summary: of the texts, or targets, that are read, with its `logit_lenses`; side."""

    format: ClassVar[str] = "regard lens"
    panels = panels.of_lens

    summary: Summary
    side: str = "text"

    def title(self) -> str:
        """Of which text."""
        more = len(self.summary.texts) - 1
        text = shortened(self.summary.texts[0], LONG) + (f" (and {more} more)" if more else "")
        return f"What each layer would say (logit lens), {text}"

    def findings(self) -> list[str]:
        """Say of each place from which layer on the model's own token is the likeliest."""
        return [_settled(each, self.summary, self.side) for each in self.summary.logit_lenses]

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


def _settled(lens: LogitLens, summary: Summary, side: str) -> str:
    lead, final = "After" if lens.after else "In the place of", lens.final
    at = numbered(summary.tokens[lens.text], lens.token)
    where = f" in {side} {summary.labels[lens.text]}" if len(summary.texts) > 1 else ""
    says = f"{lead} {at}{where} the model would say {quoted(final.text)} ({number(final.probability)})"
    others = [n for n, layer in enumerate(lens.layers) if layer.rank > 1]
    if not others:
        return f"{says}, and so would every state."
    last = others[-1]
    before = f"of rank {lens.layers[last].rank:,} {'as it enters layer 0' if last == 0 else f'after layer {last - 1}'}"
    if last == len(lens.layers) - 1:
        return f"{says}, though it is {before}."
    return f"{says}: the likeliest from layer {last} on, and {before}."
