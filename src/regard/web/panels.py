"""Write tables, heat maps, scatters, strips, curves: numbers of any kind, for components that know no attention."""

import math
from collections.abc import Sequence
from typing import Literal

from regard.explain.evolution import Evolution
from regard.web.score_rules import Data

Cell = str | int | float | None | Data
Row = list[Cell]


def column(name: str, digits: int | None = None, *, bar: bool = False) -> Data:
    """Write a column of a table. digits: of a number's decimals, None for text. bar: draw its numbers as well."""
    return {"name": name, "digits": digits, "bar": bar}


def table(title: str, note: str, columns: Sequence[Data], rows: Sequence[Sequence[Cell]], *, name: str = "") -> Data:
    """Write a table; a cell is text, a number or `in_context`, None where there is none. name: of its tab."""
    cells = [[_finite(cell) for cell in row] for row in rows]
    return {
        "kind": "table", "name": name or title, "title": title, "note": note, "columns": list(columns), "rows": cells,
    }  # fmt: skip


def heat(
    title: str,
    note: str,
    rows: Sequence[str],
    columns: Sequence[str],
    values: Sequence[Sequence[float | None]],
    *,
    signed: bool = False,
    unit: str = "",
    largest: float | None = None,
    digits: int = 3,
    axes: tuple[str, str] | None = None,
    said: Sequence[Sequence[str]] | None = None,
    sums: Data | None = None,
    behind: Data | None = None,
    name: str = "",
) -> Data:
    """Write a grid of colours. signed: negative numbers have a colour of their own. unit: what the numbers are.

    largest: the value of the darkest colour, None for the largest there is. axes: what rows and columns are. said: a
    sentence for each cell. sums, behind: of `regard.display.panels`, as a page has them.
    """
    own = [[_finite(value) for value in row] for row in values]
    return {
        "kind": "heat", "name": name or title, "title": title, "note": note, "rows": list(rows),
        "columns": list(columns), "values": own, "signed": signed, "unit": unit, "largest": largest, "digits": digits,
        "axes": None if axes is None else list(axes), "said": None if said is None else [list(row) for row in said],
        "sums": sums, "behind": behind,
    }  # fmt: skip


def scatter(
    title: str,
    note: str,
    x: str,
    y: str,
    points: Sequence[Data],
    *,
    called: tuple[str, str, str] = ("label", "group", "text"),
    drawn: Literal["labels", "groups"] = "labels",
    equal: bool = False,
    name: str = "",
) -> Data:
    """Write a cloud of points. x, y: what its axes are. equal: one scale on both, so that distances can be compared.

    called: what labels, groups and contexts are. drawn: whether each point's label stands beside it, or each group's
    name beside its first point.
    """
    return {
        "kind": "scatter", "name": name or title, "title": title, "note": note, "x": x, "y": y, "points": list(points),
        "called": dict(zip(("label", "group", "context"), called, strict=True)), "drawn": drawn, "equal": equal,
    }  # fmt: skip


def point(x: float, y: float, label: str, group: str, after: int | None = None, *, context: Data | None = None) -> Data:
    """Write a point. group: those of one share a colour. after: the number of the point that this one moved from.

    context: where it is a word of a text, as `in_context` writes it.
    """
    return {"x": x, "y": y, "label": label, "group": group, "after": after, "context": context}


def in_context(left: str, form: str, right: str) -> Data:
    """Write a word as it stands in a text, which marks it: a cell of a table, or what a point shows."""
    return {"left": left, "form": form, "right": right}


def curves(title: str, note: str, x: str, y: str, series: Sequence[Data], *, digits: int = 3, name: str = "") -> Data:
    """Write lines over one axis. x, y: what the axes are. series: as `curve` writes them. digits: decimals of y."""
    return {
        "kind": "curves", "name": name or title, "title": title, "note": note, "x": x, "y": y, "series": list(series),
        "digits": digits,
    }  # fmt: skip


def curve(
    name: str,
    x: Sequence[int],
    y: Sequence[float | None],
    *,
    spread: tuple[Sequence[int], Sequence[float | None], Sequence[float | None]] | None = None,
) -> Data:
    """Write one line. spread: where a point is the mean of several, the first x of each, their least and largest."""
    since, low, high = [list(own) for own in spread] if spread else (None, None, None)
    return {
        "name": name, "x": list(x), "y": [_finite(value) for value in y], "since": since,
        "low": None if low is None else [_finite(value) for value in low],
        "high": None if high is None else [_finite(value) for value in high],
    }  # fmt: skip


def evolution_panels(found: Evolution) -> list[Data]:
    """Write how one head's attention formed: first and last step, their difference, its figures, the embeddings."""
    first, last = found.steps[0], found.steps[-1]
    panels = [
        heat(
            f"Step {step}", found.title, found.queries, found.keys, found.weights[n], unit="weight", name=f"Step {step}"
        )
        for n, step in ((0, first), *(((len(found.steps) - 1, last),) if len(found.steps) > 1 else ()))
    ]
    if len(found.steps) > 1:
        panels.append(
            heat(
                f"Step {last} less step {first}",
                "where attention grew and where it fell",
                found.queries,
                found.keys,
                found.from_start(len(found.steps) - 1),
                signed=True,
                unit="difference of weights",
                name="Difference",
            )
        )
        columns = [column("step", 0), column("entropy", 3, bar=True), column("change", 4, bar=True)]
        note = "entropy: mean of the queries, in nats; change: mean absolute difference from the step before"
        rows = list(zip(found.steps, found.entropy, found.change, strict=True))
        panels.append(table("Step by step", note, columns, rows))
    if found.paths:
        points: list[Data] = []
        for name, path in zip(found.embedded, found.paths, strict=True):
            for n, (x, y) in enumerate(path):
                label = f"{name}, step {found.steps[n]}"
                points.append(point(x, y, label, name, len(points) - 1 if n > 0 else None))
        shares = [f"{axis}: {share:.0%} of the variance" for axis, share in zip("xy", found.share, strict=True)]
        panels.append(
            scatter(
                "The tokens' learned embeddings, step by step", "; ".join(shares), "x", "y", points, name="Embeddings"
            )
        )
    return panels


def _finite(value: Cell) -> Cell:
    return None if isinstance(value, float) and not math.isfinite(value) else value
