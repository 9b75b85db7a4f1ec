"""Say in sentences which patch has the largest effect, and which patches have it in any model."""

import re
from typing import TYPE_CHECKING, Any

from regard.display.sentences import Numbers, Template, sentences
from regard.explain.wording import quoted

if TYPE_CHECKING:
    from regard.questions.patch.answer import PatchSweep

PLACED = re.compile(r"(.*) (\d+)", re.DOTALL)  # a column of one position: its token, and its number
LEAST = 0.01  # of the other text's outcome: sentences name no patch with a smaller effect
MAX_NAMED_TRIVIAL = 2


def _denoising(numbers: Numbers) -> bool:
    return bool(numbers["denoising"])


TABLE: list[list[Template]] = [
    [
        ("Both texts have the same outcome, so there is nothing to restore.", lambda n: n["same"]),
        ("Best single patch{estimated}: {best} restores {best_share:%} of the clean outcome.", _denoising),
        ("Largest effect{estimated}: {best} moves the outcome {best_share:%} of the way to the corrupted one.", None),
        ("No patch restores 1% or more of the clean outcome.", _denoising),
        ("No patch moves the outcome by 1% or more of the way to the corrupted one.", None),
    ],
    [
        ("Largest opposite effect: {opposite} ({opposite_share:%}).", None),
        ("Next best: {other} ({other_share:%}).", lambda n: n["heads"]),
        ("Best at another position: {other} ({other_share:%}).", None),
    ],
    [
        ("Excluded as trivial (100% in any model): {trivial}.", lambda n: len(n["trivial"]) <= MAX_NAMED_TRIVIAL),
        ("Excluded as trivial (100% in any model): {trivial_count} patches, such as {trivial_first}.", None),
    ],
]


def of_patches(sweep: "PatchSweep") -> list[str]:
    """Name the patch with the largest effect, the best of another position or head, and the trivial patches."""
    trivial, heads, shares = [(row, column) for row, column, _ in sweep.given], sweep.by == "heads", sweep.shares
    numbers: dict[str, Any] = {
        "same": sweep.run == sweep.source, "denoising": sweep.direction == "denoising", "heads": heads,
        "estimated": "" if sweep.method is None else " (estimated)",
    }  # fmt: skip
    cells = [
        (shares[row][column], row, column)
        for row in range(len(sweep.layers))
        for column in range(len(sweep.columns))
        if (row, column) not in trivial and abs(shares[row][column]) >= LEAST
    ]
    ranked = sorted(cells, key=lambda cell: -cell[0])
    best = ranked[0] if ranked and ranked[0][0] > 0 else None
    if best is not None:
        numbers |= {"best": patch_name(sweep, *best[1:]), "best_share": best[0]}
        others = [cell for cell in ranked[1:] if cell[0] > 0 and (heads or cell[2] != best[2])]
        if others:
            numbers |= {"other": patch_name(sweep, *others[0][1:]), "other_share": others[0][0]}
    if ranked and -ranked[-1][0] > (best[0] if best else 0.0):
        numbers |= {"opposite": patch_name(sweep, *ranked[-1][1:]), "opposite_share": ranked[-1][0]}
    if trivial:
        names = [patch_name(sweep, *cell) for cell in trivial]
        numbers |= {"trivial": names, "trivial_count": len(names), "trivial_first": names[0]}
    return sentences(TABLE, numbers)


def exactness_of_patches(sweep: "PatchSweep") -> list[str]:
    """Say of estimates that they are estimates."""
    return [] if sweep.method is None else ["One gradient estimates all patches. Run `regard patch` to measure them."]


def patch_name(sweep: "PatchSweep", row: int, column: int) -> str:
    """Name a patch in a sentence: "“bank” (7) at layer 4", "layer 5, head 7"."""
    layer, name = sweep.layers[row], sweep.columns[column]
    if sweep.by == "heads":
        return f"layer {layer}, {name}"
    placed = PLACED.fullmatch(name)
    token = name if placed is None else f"{quoted(placed[1].strip())} ({placed[2]})"
    return f"{token} at {'the input' if layer == 'input' else f'layer {layer}'}"
