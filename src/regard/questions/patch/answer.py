"""Hold the effect on an outcome of every patch of one text's activations into another text's run."""

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from regard.capture.interventions.names import Part
from regard.capture.interventions.patch import What
from regard.display.answer import Answer
from regard.explain.frames import Row
from regard.questions.patch import panels as shown
from regard.questions.patch.panels import Layer, Reason
from regard.text.quoting import quoted, short
from regard.trace.status import UNKNOWN, Status

if TYPE_CHECKING:
    pass

Direction = Literal["denoising", "noising"]
By = Literal["positions", "heads"]
LONG = 60  # characters of a text in a title


@dataclass(frozen=True, eq=False, repr=False)
class PatchSweep(Answer):
    """The outcome with each patch. `outcomes[row][column]`: layer `layers[row]`, position or head `columns[column]`.

    clean, corrupted: the texts. run, source: outcomes without a patch, of the patched run and of the text that patches
    are taken from. by: what a column is. at: the positions at which heads are patched. sources: for each position, the
    source's token there. given: (row, column, reason) of trivial patches, which give the source's outcome in any model
    (`by_construction`). method: of estimates, None if all patches are measured. about: the status of the run without
    patches, and the reuse of its results. For estimates, the status of both texts.
    """

    format: ClassVar[str] = "regard patch"
    findings, panels = shown.patch_sentences, shown.patch_panels

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
        """Return how the run without patches was computed."""
        of = -1 if self.direction == "denoising" else 0  # the corrupted text, or the clean one
        return self.about.statuses[of] if self.about.statuses else UNKNOWN

    @property
    def shares(self) -> list[list[float]]:
        """Return the fraction of the way to the source's outcome for each patch, NaN if both outcomes are the same."""
        way = self.source - self.run
        return [[(outcome - self.run) / way if way else math.nan for outcome in row] for row in self.outcomes]

    @property
    def measure(self) -> str:
        """Name the fraction that every cell holds."""
        restored = "fraction of the clean outcome restored"
        return restored if self.direction == "denoising" else "fraction of the way to the corrupted outcome"

    def best(self, count: int = 10) -> list[tuple[int, int]]:
        """Return (row, column) of the patches with the largest changes of the outcome, largest first."""
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

    def title(self) -> str:
        """Say which text's activations are patched into which text."""
        source, run = (self.clean, self.corrupted) if self.direction == "denoising" else (self.corrupted, self.clean)
        kind = "clean" if self.direction == "denoising" else "corrupted"
        texts = f"the {kind} text {quoted(short(source, LONG))} into {quoted(short(run, LONG))}"
        return f"Patching {shown.activations(self)} of {texts}"

    def exactness(self) -> list[str]:
        """Say of estimates that they are estimates."""
        return (
            [] if self.method is None else ["One gradient estimates all patches. Run `regard patch` to measure them."]
        )

    def data(self) -> dict[str, object]:
        """Return all fields, and the shares."""
        own = {name: value for name, value in asdict(self).items() if name not in ("about", "method")}
        own = ({} if self.method is None else {"method": self.method}) | own
        return own | {"status": asdict(self.status), "measure": self.measure, "shares": self.shares}
