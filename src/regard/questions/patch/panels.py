"""The effect of every patch in sentences and panels: a grid with a sentence for each cell, and a table."""

import math
import re
from typing import TYPE_CHECKING, Any

from regard.display.panels import Cell, Column, Heat, Panel, Table, decimals
from regard.display.sentences import Template, sentences
from regard.explain.wording import capital, fixed
from regard.questions.patch.by_construction import Reason
from regard.text.quoting import quoted, spelled

if TYPE_CHECKING:
    from regard.questions.patch.answer import PatchSweep

ACTIVATIONS = {
    "hidden_states": "hidden states",
    "head_outputs": "head outputs",
    "values": "values",
    "weights": "attention weights",
    "feed_forward": "feed-forward outputs",
}
LINE = 58  # characters of an outcome's name, so that it fits one line of a plot's title
REASONS: dict[Reason, str] = {
    "elsewhere": "the texts agree at all other positions",
    "read": "the outcome is read here, after the last layer",
}
PLACED = re.compile(r"(.*) (\d+)", re.DOTALL)  # a column of one position: its token, and its number
LEAST = 0.01  # of the way to the other text's outcome: sentences name no patch with a smaller effect
MAX_NAMED = 2  # trivial patches

TABLE: list[list[Template]] = [
    [
        ("Both texts have the same outcome, so there is nothing to restore.", lambda n: n["same"]),
        ("Best single patch: {best} restores {share:%} of the clean outcome.", lambda n: n["denoising"]),
        ("Patching {best} moves the outcome furthest toward the corrupted one: {share:%} of the way.", None),
        ("No patch moves the outcome 1% or more of the way to the other text's.", None),
    ],
    [
        ("Next best: {other} ({other_share:%}).", lambda n: n["heads"]),
        ("Best at another position: {other} ({other_share:%}).", None),
    ],
    [("Excluded as trivial (100% in any model{if_measured}): {trivial}.", None)],
]


def patch_panels(sweep: "PatchSweep") -> list[Panel]:
    """Show every patch as a cell that says what the patch did, and as a row, largest change first."""
    return [_sweep_grid(sweep), _patches(sweep)]


def activations(sweep: "PatchSweep") -> str:
    """Name what is patched: "hidden states", "head outputs of the encoder at “bank”"."""
    part = "" if sweep.part is None else f" of the {'cross-attention' if sweep.part == 'cross' else sweep.part}"
    return ACTIVATIONS[sweep.what] + part + (f" at {sweep.at}" if sweep.by == "heads" else "")


def ends(sweep: "PatchSweep") -> tuple[str, str]:
    """Write the outcomes of the run and of the source with the same decimals."""
    digits = decimals((sweep.run, sweep.source))
    return fixed(sweep.run, digits, unbounded=True), fixed(sweep.source, digits, unbounded=True)


def said(sweep: "PatchSweep", row: int, column: int) -> str:
    """Say what one patch did: where, from which token, the outcome, and the fraction of the way."""
    outcome, share, (run, source) = sweep.outcomes[row][column], sweep.shares[row][column], ends(sweep)
    taken = f", from {quoted(sweep.sources[column])}" if column < len(sweep.sources) else ""
    digits = decimals((sweep.run, sweep.source))
    text = f"{capital(activations(sweep))}, {patch_name(sweep, row, column)}{taken}: "
    text += f"outcome {fixed(outcome, digits, unbounded=True)}"
    if math.isnan(share):
        return f"{text}. Both texts have {run}."
    why = next((f" Trivial: {REASONS[reason]}." for *cell, reason in sweep.given if cell == [row, column]), "")
    return f"{text}, {share:z.0%} of the way from {run} to {source}.{why}".replace(" -", " −")


def _sweep_grid(sweep: "PatchSweep") -> Heat:
    shares = [[None if math.isnan(share) else share for share in row] for row in sweep.shares]
    most = max([1.0, *(abs(share) for row in shares for share in row if share is not None)])
    size, (run, source) = (range(len(sweep.layers)), range(len(sweep.columns))), ends(sweep)
    other = "clean" if sweep.direction == "denoising" else "corrupted"
    by = "by patching" if sweep.direction == "denoising" else "after patching"
    trivial = " Grey patches give 1 in any model." if sweep.given else ""
    return Heat(
        name="Patches", title=f"{capital(sweep.measure)} {by} {activations(sweep)}",
        caption=f"{capital(spelled(sweep.outcome, LINE))} ({run} → {source})",
        note=f"Outcome: {sweep.outcome}. Fraction 0 is the outcome without a patch ({run}), and 1 is the {other} "
        f"text's ({source}).{trivial}",
        rows=["input" if layer == "input" else f"layer {layer}" for layer in sweep.layers], columns=_columns(sweep),
        axes=("layer", "head" if sweep.by == "heads" else "position"), values=shares, signed=True, largest=most,
        said=[[said(sweep, row, column) for column in size[1]] for row in size[0]],
        grey=[(row, column) for row, column, _ in sweep.given], unit=sweep.measure, screen=True, picture=True,
    )  # fmt: skip


def _columns(sweep: "PatchSweep") -> list[str]:
    """Name each column by the run's token, and by the source's token if that is another one."""
    names = list(sweep.columns)
    for n, source in enumerate(sweep.sources):
        placed = PLACED.fullmatch(names[n])
        if (placed[1].strip() if placed else names[n].strip("“”")) != source.strip():
            names[n] += f" ← {source.strip()}"
    return names


def _patches(sweep: "PatchSweep") -> Table:
    """List every patch, the largest change first."""
    shares, names, trivial = sweep.shares, _columns(sweep), {(row, column) for row, column, _ in sweep.given}
    rows: list[list[Cell]] = [
        [str(sweep.layers[row]), names[column], shares[row][column], sweep.outcomes[row][column],
         sweep.outcomes[row][column] - sweep.run, *["trivial" * ((row, column) in trivial)] * bool(trivial)]
        for row, column in sweep.best(len(sweep.layers) * len(sweep.columns))
    ]  # fmt: skip
    columns = [
        Column("layer"), Column("head" if sweep.by == "heads" else "position"),
        Column("fraction", 2, bar=True, signed=True), Column("outcome", 2, unbounded=True),
        Column("change", 2, signed=True), *[Column("note")] * bool(trivial),
    ]  # fmt: skip
    return Table(
        name="Patch by patch", title="Patches, largest change first", columns=columns, rows=rows,
        note=f"Outcome: {sweep.outcome}. Change: difference from {ends(sweep)[0]}, the outcome without a patch.",
    )  # fmt: skip


def patch_sentences(sweep: "PatchSweep") -> list[str]:
    """Name the best patch, the best of another position or head, and the trivial patches."""
    trivial, heads = [(row, column) for row, column, _ in sweep.given], sweep.by == "heads"
    numbers: dict[str, Any] = {"same": sweep.run == sweep.source, "heads": heads}
    numbers |= {"denoising": sweep.direction == "denoising", "if_measured": " if measured" * bool(sweep.method)}
    cells = {(row, column): share for row, shares in enumerate(sweep.shares) for column, share in enumerate(shares)}
    effects = {cell: share for cell, share in cells.items() if cell not in trivial and share >= LEAST}
    ranked = sorted(effects, key=lambda cell: -effects[cell])
    if ranked:
        numbers |= {"best": patch_name(sweep, *ranked[0]), "share": effects[ranked[0]]}
    for other in [cell for cell in ranked[1:] if heads or cell[1] != ranked[0][1]][:1]:
        numbers |= {"other": patch_name(sweep, *other), "other_share": effects[other]}
    if trivial:
        more = [f"{len(trivial) - MAX_NAMED} more"] if len(trivial) > MAX_NAMED else []
        numbers["trivial"] = [patch_name(sweep, *cell) for cell in trivial[:MAX_NAMED]] + more
    return sentences(TABLE, numbers)


def patch_name(sweep: "PatchSweep", row: int, column: int) -> str:
    """Name a patch in a sentence: "“bank” (7) at layer 4", "layer 5, head 7"."""
    layer, name = sweep.layers[row], sweep.columns[column]
    if sweep.by == "heads":
        return f"layer {layer}, {name}"
    placed = PLACED.fullmatch(name)
    token = name if placed is None else f"{quoted(placed[1].strip())} ({placed[2]})"
    return f"{token} at {'the input' if layer == 'input' else f'layer {layer}'}"
