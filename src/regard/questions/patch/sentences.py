"""Say in sentences which patch has the largest effect, and which patches have it in any model."""

import re
from typing import TYPE_CHECKING, Any

from regard.display.sentences import Template, sentences
from regard.explain.wording import quoted

if TYPE_CHECKING:
    from regard.questions.patch.answer import PatchSweep

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
    [("Trivial patches (100% in any model{if_measured}) are left out: {trivial}.", None)],
]


def of_patches(sweep: "PatchSweep") -> list[str]:
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
