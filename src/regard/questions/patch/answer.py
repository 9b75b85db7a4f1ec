"""Show a patch sweep: the outcome after patching each activation of one text into another text's run."""

import math
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

from regard.capture.interventions.activations import What
from regard.capture.interventions.names import Part
from regard.display.answer import MAX_TITLE, Answer
from regard.display.panels import Heat, Panel, decimals
from regard.display.sentences import Template, sentences
from regard.explain.wording import capital, fixed
from regard.shown import Row
from regard.text.quoting import display_text, quoted, short
from regard.trace.status import UNKNOWN, Status

Reason = Literal["elsewhere", "read"]
Layer = int | Literal["input"]

ACTIVATIONS = {
    "hidden_states": "hidden states",
    "head_outputs": "head outputs",
    "values": "values",
    "weights": "attention weights",
    "feed_forward": "feed-forward outputs",
}
LINE = 58  # maximum characters of an outcome's name in a plot's title
REASONS: dict[Reason, str] = {
    "elsewhere": "the texts agree at all other positions",
    "read": "the outcome is read here, after the last layer",
}
POSITION_COLUMN = re.compile(r"(.*) (\d+)", re.DOTALL)  # a position's column name: token and number
MIN_EFFECT = 0.01  # fraction of the way to the other outcome; sentences leave out smaller effects
MAX_NAMED = 2  # trivial patches named in a sentence

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


def activations_name(sweep: "PatchSweep") -> str:
    """Name the patched activations: "hidden states", "head outputs of the encoder at “bank”"."""
    part = "" if sweep.part is None else f" of the {'cross-attention' if sweep.part == 'cross' else sweep.part}"
    return ACTIVATIONS[sweep.what] + part + (f" at {sweep.at}" if sweep.by == "heads" else "")


def format_outcomes(sweep: "PatchSweep", *outcomes: float) -> list[str]:
    """Format outcomes with the same number of decimals, which also suits the outcomes of the run and the source."""
    ends = sweep.run, sweep.source
    return [fixed(value, decimals(ends), unbounded=True) for value in (*ends, *outcomes)]


def describe_patch(sweep: "PatchSweep", row: int, column: int) -> str:
    """Describe a patch in sentences: position, source token, outcome, and the fraction of the way to the source's."""
    share = sweep.shares[row][column]
    run, source, outcome = format_outcomes(sweep, sweep.outcomes[row][column])
    origin = f", from {quoted(sweep.sources[column])}" if column < len(sweep.sources) else ""
    text = f"{capital(activations_name(sweep))}, {patch_name(sweep, row, column)}{origin}: outcome {outcome}"
    if math.isnan(share):
        return f"{text}. Both texts have {run}."
    note = next((f" Trivial: {REASONS[reason]}." for *cell, reason in sweep.given if cell == [row, column]), "")
    return f"{text}, {share:z.0%} of the way from {run} to {source}.{note}".replace(" -", " −")


def _sweep_grid(sweep: "PatchSweep") -> Heat:
    """Return a heat map with each patch's fraction and description."""
    shares = [[None if math.isnan(share) else share for share in row] for row in sweep.shares]
    largest = max([1.0, *(abs(share) for row in shares for share in row if share is not None)])
    run, source = format_outcomes(sweep)
    other, by = ("clean", "by") if sweep.direction == "denoising" else ("corrupted", "after")
    trivial = " Grey patches give 1 in any model." if sweep.given else ""
    return Heat(
        name="Patches", title=f"{capital(sweep.measure)} {by} patching {activations_name(sweep)}",
        caption=f"{capital(display_text(sweep.outcome, LINE))} ({run} → {source})",
        note=f"Outcome: {sweep.outcome}. Fraction 0 is the outcome without a patch ({run}), and 1 is the {other} "
        f"text's ({source}).{trivial}",
        rows=["input" if n == "input" else f"layer {n}" for n in sweep.layers], columns=_column_names(sweep),
        axes=("layer", "head" if sweep.by == "heads" else "position"), values=shares, signed=True, largest=largest,
        said=[[describe_patch(sweep, row, n) for n in range(len(sweep.columns))] for row in range(len(sweep.layers))],
        grey=[(row, column) for row, column, _ in sweep.given], unit=sweep.measure, screen=True, picture=True,
    )  # fmt: skip


def _column_names(sweep: "PatchSweep") -> list[str]:
    """Name each column by the run's token and, if it differs, the source's token."""
    names = list(sweep.columns)
    for n, source in enumerate(sweep.sources):
        placed = POSITION_COLUMN.fullmatch(names[n])
        if (placed[1].strip() if placed else names[n].strip("“”")) != source.strip():
            names[n] += f" ← {source.strip()}"
    return names


def patch_sentences(sweep: "PatchSweep") -> list[str]:
    """Return sentences on the best patch, the best patch at another position or head, and trivial patches."""
    trivial, heads = [(row, column) for row, column, _ in sweep.given], sweep.by == "heads"
    numbers: dict[str, Any] = {"same": sweep.run == sweep.source, "heads": heads}
    numbers |= {"denoising": sweep.direction == "denoising", "if_measured": " if measured" * bool(sweep.method)}
    cells = {(row, column): share for row, shares in enumerate(sweep.shares) for column, share in enumerate(shares)}
    effects = {cell: share for cell, share in cells.items() if cell not in trivial and share >= MIN_EFFECT}
    ranked = sorted(effects, key=lambda cell: -effects[cell])
    if ranked:
        numbers |= {"best": patch_name(sweep, *ranked[0]), "share": effects[ranked[0]]}
    for other in [cell for cell in ranked[1:] if heads or cell[1] != ranked[0][1]][:1]:
        numbers |= {"other": patch_name(sweep, *other), "other_share": effects[other]}
    if trivial:
        rest = [f"{len(trivial) - MAX_NAMED} more"] if len(trivial) > MAX_NAMED else []
        numbers["trivial"] = [patch_name(sweep, *cell) for cell in trivial[:MAX_NAMED]] + rest
    return sentences(TABLE, numbers)


def patch_name(sweep: "PatchSweep", row: int, column: int) -> str:
    """Name a patch in a sentence: "“bank” (7) at layer 4", "layer 5, head 7"."""
    layer, name = sweep.layers[row], sweep.columns[column]
    if sweep.by == "heads":
        return f"layer {layer}, {name}"
    placed = POSITION_COLUMN.fullmatch(name)
    token = name if placed is None else f"{quoted(placed[1].strip())} ({placed[2]})"
    return f"{token} at {'the input' if layer == 'input' else f'layer {layer}'}"


Direction = Literal["denoising", "noising"]
By = Literal["positions", "heads"]


@dataclass(frozen=True, eq=False, repr=False)
class PatchSweep(Answer):
    """Outcomes of patches. `outcomes[row][column]` is for layer `layers[row]` and position or head `columns[column]`.

    clean, corrupted: the texts. run: the outcome of the patched run without a patch. source: the outcome of the text
    that patches are taken from. by: whether columns are positions or heads. at: the positions at which heads are
    patched. sources: the source's token at each position. given: (row, column, reason) of trivial patches, which lead
    to the source's outcome in any model (`sweep.trivial_patches`). method: how outcomes are estimated, None if they are
    measured. about: the status of the run without patches (for estimates, of both texts), with notes on reused results.
    """

    format = "regard patch"
    findings = patch_sentences

    what: What
    by: By
    direction: Direction
    clean: str
    corrupted: str
    outcome: str
    run: float
    source: float
    layers: tuple[Layer, ...]
    columns: tuple[str, ...]
    outcomes: list[list[float]]
    at: str = "all positions"
    part: Part | None = None
    sources: tuple[str, ...] = ()
    given: tuple[tuple[int, int, Reason], ...] = ()
    method: str | None = None

    @property
    def status(self) -> Status:
        """Return the status of the run without patches."""
        text = -1 if self.direction == "denoising" else 0  # the corrupted or the clean text
        return self.about.statuses[text] if self.about.statuses else UNKNOWN

    @property
    def shares(self) -> list[list[float]]:
        """Return each patch's fraction of the way to the source's outcome, NaN if both outcomes are equal."""
        way = self.source - self.run
        return [[(outcome - self.run) / way if way else math.nan for outcome in row] for row in self.outcomes]

    @property
    def measure(self) -> str:
        """Return the name of the fraction that each cell shows."""
        restored = "fraction of the clean outcome restored"
        return restored if self.direction == "denoising" else "fraction of the way to the corrupted outcome"

    def best(self, count: int = 10) -> list[tuple[int, int]]:
        """Return (row, column) of the patches that change the outcome most, the largest change first."""
        cells = [(row, column) for row in range(len(self.layers)) for column in range(len(self.columns))]
        return sorted(cells, key=lambda cell: -abs(self.outcomes[cell[0]][cell[1]] - self.run))[:count]

    def rows(self) -> list[Row]:
        """List one row per patch: layer, column (a token with its number, or a head), outcome, share."""
        shares = self.shares
        return [
            {"layer": str(layer), self.by.removesuffix("s"): column, "outcome": outcome, "share": shares[n][k]}
            for n, layer in enumerate(self.layers)
            for k, (column, outcome) in enumerate(zip(self.columns, self.outcomes[n], strict=True))
        ]

    def panels(self) -> list[Panel]:
        """Return a heat map with a cell per patch."""
        return [_sweep_grid(self)]

    def title(self) -> str:
        """Return a title that names the patched activations and the text they come from."""
        clean, corrupted = (quoted(short(text, MAX_TITLE)) for text in (self.clean, self.corrupted))
        texts = f"clean text {clean} into {corrupted}"
        if self.direction == "noising":
            texts = f"corrupted text {corrupted} into {clean}"
        return f"Patching {activations_name(self)} of the {texts}"

    def exactness(self) -> list[str]:
        """Return a note if the outcomes are gradient estimates."""
        return ["One gradient estimates all patches. Run `regard patch` to measure them."] * (self.method is not None)

    def data(self) -> dict[str, object]:
        """Return all fields, the status, and the fraction for each patch."""
        fields = {name: value for name, value in asdict(self).items() if name not in ("about", "method")}
        fields = ({} if self.method is None else {"method": self.method}) | fields
        return fields | {"status": asdict(self.status), "measure": self.measure, "shares": self.shares}
