"""What every patch did, as panels: a grid whose cells say it in words, and a table."""

import math
from typing import TYPE_CHECKING

from regard.display.panels import Cell, Column, Heat, Panel, Table
from regard.explain.wording import capital, number
from regard.questions.patch.sentences import PLACED, other_token_put_in, reason_of
from regard.text.quoting import quoted

if TYPE_CHECKING:
    from regard.questions.patch.answer import PatchSweep

PUT_IN = {  # what of one run is put into the other
    "hidden_states": "hidden states",
    "head_outputs": "head outputs (weights × values, before W_O)",
    "values": "values",
    "weights": "weights",
    "feed_forward": "feed-forward outputs",
}


def of_patches(sweep: "PatchSweep") -> list[Panel]:
    """Show every patch as a cell that says in words what it did, and as a row, those that changed most first."""
    return [_sweep_grid(sweep), _patches(sweep)]


def said(sweep: "PatchSweep", row: int, place: int) -> str:
    """Say what one patch did, in words."""
    outcome, share = sweep.outcomes[row][place], sweep.shares[row][place]
    did = f"{_patched(sweep, row, place)}: the outcome is {number(outcome, '.4g')}"
    if math.isnan(share):
        return f"{did}; both texts have {number(sweep.run, '.4g')}: there is no way between them"
    way = f"of the way from {number(sweep.run, '.4g')} to {number(sweep.source, '.4g')}"
    why = reason_of(sweep, row, place)
    bound = f"; all of it by construction, {why}" if why else ""
    return f"{did}, {abs(share):.1%} {way}" + " in the other direction" * (round(share, 3) < 0) + bound


def _patched(sweep: "PatchSweep", row: int, place: int) -> str:
    """What one patch put in, as a sentence begins."""
    layer, where = sweep.layers[row], _patch_place_in_words(sweep, place)
    taken = f", taken from {quoted(sweep.sources[place])}" if place < len(sweep.sources) else ""
    if sweep.what == "hidden_states":
        return f"What {'enters layer 0' if layer == 'input' else f'leaves layer {layer}'} at {where}{taken}"
    if sweep.what == "feed_forward":
        return f"Feed-forward output of layer {layer} at {where}{taken}"
    name = {"head_outputs": "Output", "values": "Values", "weights": "Weights"}[sweep.what]
    if sweep.by == "heads":
        return f"{name} of layer {layer}, {where}, at {sweep.at}"
    return f"{name} of all heads of layer {layer} at {where}{taken}"


def _patch_place_in_words(sweep: "PatchSweep", place: int) -> str:
    """What a column is called in a sentence."""
    name = sweep.columns[place]
    found = PLACED.fullmatch(name)
    return name if sweep.by == "heads" or found is None else f"{quoted(found[1].strip())} (token {found[2]})"


def _sweep_grid(sweep: "PatchSweep") -> Heat:
    shares = [[None if math.isnan(share) else share for share in row] for row in sweep.shares]
    most = max([1.0, *(abs(share) for row in shares for share in row if share is not None)])
    size = range(len(sweep.layers)), range(len(sweep.columns))
    title = capital(f"{sweep.measure}: {sweep.direction}, {sweep.what}")
    return Heat(
        name="Patches", title=title, caption=title, note=_meaning(sweep),
        rows=["input" if layer == "input" else f"layer {layer}" for layer in sweep.layers], columns=_columns(sweep),
        axes=("layer", "head" if sweep.by == "heads" else "token"), values=shares, signed=True, largest=most,
        said=[[said(sweep, row, each) for each in size[1]] for row in size[0]],
        grey=[(row, column) for row, column, _ in sweep.given],
        unit=sweep.measure.partition(" that ")[0], screen=True, picture=True,
    )  # fmt: skip


def _meaning(sweep: "PatchSweep") -> str:
    """What 0 and 1 mean, what a cell is, and what the direction asks."""
    read, other = ("corrupted", "clean") if sweep.direction == "denoising" else ("clean", "corrupted")
    asks = (
        "Denoising asks what is enough to bring the clean text's outcome back."
        if sweep.direction == "denoising"
        else "Noising asks what the clean text's outcome cannot do without."
    )
    part = "" if sweep.part is None else f" of the {'cross-attention' if sweep.part == 'cross' else sweep.part}"
    where = f"in one head, at {sweep.at}," if sweep.by == "heads" else "in one layer, at one place,"
    return (
        f"Share of the way from the outcome without a patch, {number(sweep.run, '.4g')} (0), to the {other} text's, "
        f"{number(sweep.source, '.4g')} (1). Each cell is one run of the model on the {read} text that {where} gets "
        f"{PUT_IN[sweep.what]}{part} of the {other} text instead of its own. {asks} Below 0 the patch moved the "
        "outcome away." + " Grey goes all of the way by construction." * bool(sweep.given)
    )


def _columns(sweep: "PatchSweep") -> list[str]:
    """What columns are called: by the run's token, and by what was put in where that is another."""
    others = [other_token_put_in(sweep, n) for n in range(len(sweep.columns))]
    return [f"{name} ← {other}" if other else name for name, other in zip(sweep.columns, others, strict=True)]


def _patches(sweep: "PatchSweep") -> Table:
    """Every patch, those that changed most first."""
    shares, names, noted = sweep.shares, _columns(sweep), bool(sweep.given)
    rows: list[list[Cell]] = [
        [str(sweep.layers[row]), names[each], shares[row][each], sweep.outcomes[row][each],
         sweep.outcomes[row][each] - sweep.run, *["by construction" * bool(reason_of(sweep, row, each))] * noted]
        for row, each in sweep.best(len(sweep.layers) * len(sweep.columns))
    ]  # fmt: skip
    columns = [
        Column("layer"), Column("head" if sweep.by == "heads" else "token"), Column("share", 2, bar=True, signed=True),
        Column("outcome", 2, unbounded=True), Column("change", 2, signed=True),
        *[Column("note")] * noted,
    ]  # fmt: skip
    return Table(
        name="Patch by patch", title="Patch by patch", columns=columns, rows=rows,
        note=f"Outcome: {sweep.outcome}. Change: from {number(sweep.run, '.4g')}, without a patch. The largest come "
        "first.",
    )  # fmt: skip
