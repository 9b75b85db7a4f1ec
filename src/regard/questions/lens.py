"""The logit lens: what each layer would predict if the remaining layers did nothing, with its panels."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from regard.display.answer import Read, TracesAnswer
from regard.display.panels import Cell, Column, Heat, Panel, Shares, Table
from regard.display.sentences import MAX_SENTENCES, Template, sentences
from regard.explain.frames import Row
from regard.explain.logits import LogitLens, Prediction
from regard.explain.texts.summary import Summary, summarise
from regard.explain.wording import called, fixed, number, numbered, state_name
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


def table(lens: LogitLens, summary: Summary, side: str) -> Panel:
    """What each layer would say at one place."""
    label, at = place(summary, lens)
    rows: list[list[Cell]] = [
        [state_name(layer.state), Shares([(c.text, c.probability) for c in layer.candidates]), str(layer.rank)]
        for layer in lens.layers
    ]
    final = quoted(lens.final.text)
    columns = [Column("state"), Column("most likely tokens, with probability"), Column(f"rank of {final}")]
    title = f"Predictions {_where(lens, at)} in {side} {label}, layer by layer (logit lens)"
    note = (
        "Each state goes through the model's final norm and output head. "
        f"The model predicts {final} ({number(lens.final.probability)}). The last state's logits are within "
        f"{lens.difference:.1e} of the model's."
    )
    return Table(name=_lens_of(lens, summary, side), title=title, note=note, columns=columns, rows=rows, screen=True)


def cells(lens: LogitLens, summary: Summary, side: str) -> Heat:
    """A row for every state; the token that the whole model finds likeliest stands out."""
    label, at = place(summary, lens)
    found = [layer.candidates for layer in lens.layers]
    final = quoted(lens.final.text)
    return Heat(
        name=f"{_lens_of(lens, summary, side)}, cells", title=f"{label}, {_where(lens, at)}: predictions of each layer",
        rows=[state_name(layer.state) for layer in lens.layers], columns=[str(n + 1) for n in range(len(found[0]))],
        values=[[each.probability for each in row] for row in found], axes=("state", "rank"), unit="probability",
        largest=1.0, upwards=True, picture=True, written=[[each.text for each in row] for row in found],
        strong=[(i, j) for i, row in enumerate(found) for j, each in enumerate(row) if each.id == lens.final.id],
        said=[[f"{quoted(each.text)} {fixed(each.probability, 3)}" for each in row] for row in found],
        caption=f"most likely tokens, darker is more likely; bold: {final}, the model's prediction",
    )  # fmt: skip


def place(summary: Summary, each: Prediction | LogitLens) -> tuple[str, str]:
    """The label of a text or occurrence, and the token with its number where there are more of its kind."""
    return each.occurrence or summary.labels[each.text], called(each.token, summary.tokens[each.text])


def _where(each: LogitLens, at: str) -> str:
    return f"{'after' if each.after else 'at'} {quoted(at)}"


def _lens_of(lens: LogitLens, summary: Summary, side: str) -> str:
    label, at = place(summary, lens)
    return f"Logit lens, {side} {label} {_where(lens, at)}"


@dataclass(frozen=True, eq=False, repr=False)
class Lens(TracesAnswer):
    """Predictions read from each hidden state. summary: of the texts or targets, with its `logit_lenses`; side."""

    format: ClassVar[str] = "regard lens"

    summary: Summary
    side: str = "text"

    def panels(self) -> list[Panel]:
        """Of each place its table and its cells."""
        return [make(each, self.summary, self.side) for each in self.summary.logit_lenses for make in (table, cells)]

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
