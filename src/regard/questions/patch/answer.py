"""Hold what every patch of one text's run with another's did to an outcome."""

import math
from dataclasses import asdict, dataclass
from typing import ClassVar, Literal

from regard.capture.interventions.names import Part
from regard.capture.interventions.patch import What
from regard.display.answer import Answer
from regard.explain.frames import Row
from regard.explain.wording import number
from regard.questions.patch import panels, sentences
from regard.questions.patch.by_construction import Layer, Reason
from regard.text.tokens import shortened
from regard.trace.status import UNKNOWN, Status

Direction = Literal["denoising", "noising"]
By = Literal["positions", "heads"]
LONG = 60  # characters of a text in a title


@dataclass(frozen=True, eq=False, repr=False)
class PatchSweep(Answer):
    """What every patch did. `outcomes[row][column]` is of layer `layers[row]` and place or head `columns[column]`.

    clean, corrupted: the texts. run, source: the outcomes of the run and of what it was patched with, without patches.
    by: what the columns are. at: of heads, the places that were patched. sources: of positions, what stands in the
    source where each column's patch was taken. given: (row, column, reason) of the patches that give the source's
    outcome by construction, whatever the model does (`by_construction`). method: of estimates, None where all was
    measured. about: with the status of the run without patches, and what of it was not computed again for each patch;
    of estimates with those of both texts.
    """

    format: ClassVar[str] = "regard patch"
    findings = sentences.of_patches
    panels = panels.of_patches

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
        """How the run without patches was computed."""
        of = -1 if self.direction == "denoising" else 0  # the corrupted text, or the clean one
        return self.about.statuses[of] if self.about.statuses else UNKNOWN

    @property
    def shares(self) -> list[list[float]]:
        """The share of the way to the source's outcome that each patch went; NaN where both outcomes are the same."""
        way = self.source - self.run
        return [[(each - self.run) / way if way else math.nan for each in row] for row in self.outcomes]

    @property
    def measure(self) -> str:
        """Say what a share is of, which every picture of the shares is headed by."""
        ends = f"from {number(self.run, '.3g')} to {number(self.source, '.3g')}"
        return f"share of the way {ends} that each patch goes ({self.outcome})"

    def best(self, count: int = 10) -> list[tuple[int, int]]:
        """Find (row, column) of the patches that changed the outcome most, the largest change first."""
        cells = [(row, column) for row in range(len(self.layers)) for column in range(len(self.columns))]
        return sorted(cells, key=lambda cell: -abs(self.outcomes[cell[0]][cell[1]] - self.run))[:count]

    def rows(self) -> list[Row]:
        """List one row a patch: layer, column (a token with its number, or a head), outcome, and share."""
        shares = self.shares
        return [
            {"layer": str(layer), self.by.removesuffix("s"): column, "outcome": outcome, "share": shares[n][k]}
            for n, layer in enumerate(self.layers)
            for k, (column, outcome) in enumerate(zip(self.columns, self.outcomes[n], strict=True))
        ]

    def title(self) -> str:
        """Say which text is put into which."""
        both = f"the clean {shortened(self.clean, LONG)}", f"the corrupted {shortened(self.corrupted, LONG)}"
        source, run = both if self.direction == "denoising" else reversed(both)
        return f"What patches of {source} do in {run}"

    def data(self) -> dict[str, object]:
        """Give all of it, with the shares."""
        own = {name: value for name, value in asdict(self).items() if name not in ("about", "method")}
        own = ({} if self.method is None else {"method": self.method}) | own
        return own | {"status": asdict(self.status), "measure": self.measure, "shares": self.shares}
