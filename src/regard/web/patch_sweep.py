"""The page of a sweep of patches: every patch as a cell of a grid that says in words what it did, and as a table."""

import math

from regard.explain.causes.patch_sweep import PatchSweep
from regard.explain.findings.patch_sweep import PLACED, patch_findings, reason_of
from regard.explain.findings.wording import capital
from regard.text.quoting import quoted
from regard.text.tokens import shortened
from regard.web.page import Page, status_lines
from regard.web.panels import Row, column, heat, table
from regard.web.score_rules import Data

PUT_IN = {  # what of one run is put into the other
    "hidden_states": "hidden states",
    "head_outputs": "head outputs (weights × values, before W_O)",
    "values": "values",
    "weights": "weights",
    "feed_forward": "feed-forward outputs",
}
LONG = 60  # characters of a text in a title


def sweep_page(sweep: PatchSweep) -> Page:
    """Put together the page of a sweep of patches."""
    page = Page(f"Patches between {shortened(sweep.clean, LONG)} and {shortened(sweep.corrupted, LONG)}")
    page.findings = [f"{capital(sentence)}." for sentence in patch_findings(sweep)]
    page.status = status_lines([sweep.status], page) if sweep.status.model else []
    page.panels = [_grid(sweep), _patches(sweep)]
    page.opening["view"] = "panel 0"
    return page


def said(sweep: PatchSweep, row: int, place: int) -> str:
    """What one patch did, in words."""
    outcome, share = sweep.outcomes[row][place], sweep.shares[row][place]
    did = f"{_patched(sweep, row, place)}: the outcome is {outcome:.4g}"
    if math.isnan(share):
        return f"{did}; there is no way to go, both texts have {sweep.run:.4g}"
    way = f"of the way from {sweep.run:.4g} to {sweep.source:.4g}"
    why = reason_of(sweep, row, place)
    bound = f"; all of it by construction, {why}" if why else ""
    return f"{did}, {abs(share):.1%} {way}" + " in the other direction" * (round(share, 3) < 0) + bound


def _patched(sweep: PatchSweep, row: int, place: int) -> str:
    """What one patch put in, as a sentence begins."""
    layer, where = sweep.layers[row], _place(sweep, place)
    taken = f", taken from {quoted(sweep.sources[place])}" if place < len(sweep.sources) else ""
    if sweep.what == "hidden_states":
        return f"What {'enters layer 0' if layer == 'input' else f'leaves layer {layer}'} at {where}{taken}"
    if sweep.what == "feed_forward":
        return f"Feed-forward output of layer {layer} at {where}{taken}"
    name = {"head_outputs": "Output", "values": "Values", "weights": "Weights"}[sweep.what]
    if sweep.by == "heads":
        return f"{name} of layer {layer}, {where}, at {sweep.at}"
    return f"{name} of all heads of layer {layer} at {where}{taken}"


def _place(sweep: PatchSweep, place: int) -> str:
    """What a column is called in a sentence."""
    name = sweep.columns[place]
    found = PLACED.fullmatch(name)
    return name if sweep.by == "heads" or found is None else f"{quoted(found[1].strip())} (token {found[2]})"


def _grid(sweep: PatchSweep) -> Data:
    shares = [[None if math.isnan(share) else share for share in row] for row in sweep.shares]
    most = max([1.0, *(abs(share) for row in shares for share in row if share is not None)])
    return heat(
        f"Patches: {sweep.outcome}", _meaning(sweep),
        ["input" if layer == "input" else f"layer {layer}" for layer in sweep.layers], sweep.columns, shares,
        signed=True, unit="share", largest=most, axes=("layer", "head" if sweep.by == "heads" else "token"),
        said=[[said(sweep, row, each) for each in range(len(sweep.columns))] for row in range(len(sweep.layers))],
        name="Patches",
    )  # fmt: skip


def _meaning(sweep: PatchSweep) -> str:
    """What a cell is, what the two directions ask, and what 0 and 1 mean."""
    read, other = ("corrupted", "clean") if sweep.direction == "denoising" else ("clean", "corrupted")
    asks = (
        "Denoising asks what is enough to bring the clean text's outcome back."
        if sweep.direction == "denoising"
        else "Noising asks what the clean text's outcome cannot do without."
    )
    part = "" if sweep.part is None else f" of the {'cross-attention' if sweep.part == 'cross' else sweep.part}"
    where = f"in one head, at {sweep.at}," if sweep.by == "heads" else "in one layer, at one place,"
    return (
        f"Each cell is one run of the model on the {read} text that {where} gets {PUT_IN[sweep.what]}{part} of the "
        f"{other} text instead of its own. {asks} The outcome, {sweep.outcome}, is {sweep.run:.4g} without a patch and "
        f"{sweep.source:.4g} in the {other} text. Share 0: the patch changed nothing. Share 1: it gave the {other} "
        "text's outcome. Below 0: it moved the outcome away from it."
    )


def _patches(sweep: PatchSweep) -> Data:
    """Every patch, those that changed most first."""
    shares = sweep.shares
    rows: list[Row] = [
        [str(sweep.layers[row]), sweep.columns[each], shares[row][each], sweep.outcomes[row][each],
         sweep.outcomes[row][each] - sweep.run]
        for row, each in sweep.best(len(sweep.layers) * len(sweep.columns))
    ]  # fmt: skip
    columns = [
        column("layer"), column("head" if sweep.by == "heads" else "token"), column("share", 3, bar=True),
        column("outcome", 4), column("change", 4),
    ]  # fmt: skip
    note = (
        f"outcome: {sweep.outcome}; change: from {sweep.run:.4g}, the outcome without a patch; the largest come first"
    )
    return table("Patch by patch", note, columns, rows)
