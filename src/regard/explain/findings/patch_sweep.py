"""Say in sentences what a sweep of patches found."""

from regard.explain.causes.patch_sweep import PatchSweep
from regard.text.tokens import shortened

MOST = 3  # patches that a sentence names


def patch_findings(sweep: PatchSweep) -> list[str]:
    """What the run's outcome is, what the source's, and which patches went furthest from one to the other."""
    read, source = sweep.corrupted, sweep.clean
    if sweep.direction == "noising":
        read, source = source, read
    found = [
        f"{sweep.direction}: {shortened(read)} is read, and {sweep.what} of {shortened(source)} are put in, "
        + ("one head at a time" + f", {sweep.at}" if sweep.by == "heads" else "one place at a time"),
        f"{sweep.outcome}: {sweep.run:.3g} without patches, {sweep.source:.3g} in the other text",
    ]
    if sweep.run == sweep.source:
        return [*found, "both texts have the same outcome: there is no way from one to the other to go"]
    shares = sweep.shares
    best = [f"{place_of(sweep, *cell)}: {shares[cell[0]][cell[1]]:.0%}" for cell in sweep.best(MOST)]
    return [*found, f"of the way to the other's outcome, the patches that changed most went {', '.join(best)}"]


def place_of(sweep: PatchSweep, row: int, column: int) -> str:
    """How a patch is called: its layer and its column."""
    layer = sweep.layers[row]
    return f"{sweep.columns[column]} {'entering layer 0' if layer == 'input' else f'in layer {layer}'}"
