"""The answer of `regard check`: one row per check, with its largest difference and what was allowed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar

from regard.display.answer import Answer
from regard.display.panels import Column, Panel, Table
from regard.explain.frames import Row
from regard.explain.wording import listed

PASSED, FAILED, UNMEASURED = "passed", "FAILED", "not measured"


@dataclass(frozen=True)
class Result:
    """The outcome of one check.

    difference: the largest, None if nothing was measured. allowed: how large it may be. where: its text, layer, head
    and tokens; or why the check was not measured, or the error that ended it.
    """

    check: str
    difference: float | None = None
    allowed: float | None = None
    where: str = ""

    @property
    def verdict(self) -> str:
        """Return whether the check passed, failed or was not measured."""
        if self.difference is None or self.allowed is None:
            return UNMEASURED
        return PASSED if self.difference <= self.allowed else FAILED


@dataclass(frozen=True, eq=False, repr=False)
class Check(Answer):
    """The results of all checks of one model. name: the model's. where: the library, device and threads."""

    format: ClassVar[str] = "regard check"

    name: str
    where: str
    results: Sequence[Result] = field(repr=False)

    @property
    def holds(self) -> bool:
        """Whether no check failed."""
        return not self.of(FAILED)

    def of(self, verdict: str) -> list[Result]:
        """Return the results with this verdict."""
        return [each for each in self.results if each.verdict == verdict]

    def title(self) -> str:
        """Name the model."""
        return f"{self.name} compared with its own code"

    def findings(self) -> list[str]:
        """Count the checks that passed, and name the others."""
        measured = len(self.results) - len(self.of(UNMEASURED))
        found = [f"{len(self.of(PASSED))} of {measured} measured checks passed."]
        for said, verdict in ((FAILED, FAILED), ("Not measured, for the reason in the table", UNMEASURED)):
            if self.of(verdict):
                found.append(f"{said}: {listed([each.check for each in self.of(verdict)])}.")
        return found

    def exactness(self) -> list[str]:
        """Name what was computed with."""
        return [f"Checked with {self.where}."]

    def rows(self) -> list[Row]:
        """List one row per check."""
        return [asdict(each) | {"verdict": each.verdict} for each in self.results]

    def data(self) -> dict[str, object]:
        """Return whether no check failed, and all rows."""
        return {"model": self.name, "holds": self.holds, "computed_with": self.where, "rows": self.rows()}

    def panels(self) -> list[Panel]:
        """Show one table."""
        columns = [Column(name) for name in ("check", "difference", "allowed", "verdict", "where it is largest")]
        rows = [
            [each.check, _number(each.difference), _number(each.allowed), each.verdict, each.where]
            for each in self.results
        ]
        return [Table(name="Checks", title=self.title(), columns=columns, rows=rows, screen=True, leads=True)]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}" if value else "0"
