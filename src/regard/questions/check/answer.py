"""The answer of `regard check`: one row per check, with its largest difference and what was allowed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import ClassVar

from regard.display.answer import Answer
from regard.display.panels import Column, Panel, Table
from regard.display.sentences import Template, sentences
from regard.explain.frames import Row

PASSED, FAILED, NOT_TESTED = "passed", "FAILED", "not tested"
TABLE: list[list[Template]] = [
    [("All {tested} checks passed.", lambda n: n["passed"] == n["tested"] > 1),
     ("{passed} of {tested} checks passed.", None)],
    [("Failed: {failed}.", None)],
    [("Not tested: {left}.", None)],
]  # fmt: skip


@dataclass(frozen=True)
class Result:
    """The largest difference that a check found, how large it may be, and its text, layer, head and tokens.

    If a check was not tested, difference and allowed are None, and where is the reason.
    """

    check: str
    difference: float | None = None
    allowed: float | None = None
    where: str = ""

    @property
    def verdict(self) -> str:
        """Return whether the check passed, failed or was not tested."""
        if self.difference is None or self.allowed is None:
            return NOT_TESTED
        return PASSED if self.difference <= self.allowed else FAILED


@dataclass(frozen=True, eq=False, repr=False)
class Check(Answer):
    """The results of all checks of one model. name: the model's. where: what they were computed with."""

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
        passed, failed, left = ([x.check for x in self.of(verdict)] for verdict in (PASSED, FAILED, NOT_TESTED))
        numbers = {
            "passed": len(passed),
            "tested": len(passed + failed),
            "failed": failed or None,
            "left": left or None,
        }
        return sentences(TABLE, numbers)

    def exactness(self) -> list[str]:
        """Name the library, device and threads."""
        return [f"Checked with {self.where}."]

    def rows(self) -> list[Row]:
        """List one row per check."""
        return [asdict(each) | {"verdict": each.verdict} for each in self.results]

    def data(self) -> dict[str, object]:
        """Return whether no check failed, and all rows."""
        return {"model": self.name, "holds": self.holds, "computed_with": self.where, "rows": self.rows()}

    def panels(self) -> list[Panel]:
        """Show one table, with the place of a failure or the reason why a check was not tested."""
        columns = [Column(name) for name in ("check", "difference", "allowed", "verdict", "place or reason")]
        rows = []
        for each in self.results:
            numbers = ("" if x is None else f"{x:.1e}" for x in (each.difference, each.allowed))
            rows.append([each.check, *numbers, each.verdict, each.where * (each.verdict != PASSED)])
        return [Table(name="Checks", title=self.title(), columns=columns, rows=rows, screen=True)]
