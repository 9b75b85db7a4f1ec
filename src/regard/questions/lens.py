"""The panels of the logit lens: what each layer would predict if the remaining layers did nothing."""

from regard.display.panels import Cell, Column, Heat, Panel, Shares, Table
from regard.explain.logits import LogitLens, Prediction
from regard.explain.texts.summary import Summary
from regard.explain.wording import called, fixed, number, state_name
from regard.text.quoting import quoted


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
