"""Write a page's panels as plain tables of HTML, for those who read it without JavaScript."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from regard.explain.causes.layer_updates import LARGEST_SHARES
from regard.explain.wording import fixed
from regard.text.quoting import MARKS, short

Escape = Callable[[str], str]


def plain_tables(panels: Iterable[Mapping[str, Any]], escape: Escape) -> Iterator[str]:
    """Write each panel as a table with its title and its note. escape: makes a text HTML."""
    for panel in panels:
        heads, rows = _html_rows_of_panel(panel)
        last = _last_html_rows(panel)
        yield f"<h2>{escape(panel['title'])}</h2>\n"
        for line in (panel.get("caption"), panel["note"], *panel.get("sentences", ())):
            yield f"<p>{escape(line)}</p>\n" if line else ""
        yield '<div class="plain">\n<table>\n<thead><tr>'
        yield "".join(f'<th scope="col">{escape(head)}</th>' for head in heads)
        yield "</tr></thead>\n<tbody>\n"
        yield from (_html_table_row(row, escape) for row in rows)
        yield "</tbody>\n"
        if last:
            yield "<tfoot>\n"
            yield from (_html_table_row(row, escape) for row in last)
            yield "</tfoot>\n"
        yield "</table>\n</div>\n"


def _html_table_row(row: Iterable[Any], escape: Escape) -> str:
    first, *others = (_html_table_cell(cell, escape) for cell in row)
    cells = "".join(f"<td>{cell}</td>" for cell in others)
    return f'<tr><th scope="row">{first}</th>{cells}</tr>\n'


def _last_html_rows(panel: Mapping[str, Any]) -> list[list[Any]]:
    """The rows of all: a table's total; of bars those that the page does not have, and the sum."""
    if panel["kind"] == "table" and panel.get("total"):
        return [_table_cells(panel, panel["total"])]
    if panel["kind"] != "bars":
        return []
    count, added = panel.get("others") or (0, None)
    if panel["whole"] is None:
        return [[f"{count:,} others, left out here", None]] if count else []
    rest = [["1 other" if count == 1 else f"{count:,} others together", _number_text(added, panel["digits"])]]
    return [*(rest if count else []), ["sum", _number_text(panel["whole"], panel["digits"])]]


def _html_rows_of_panel(panel: Mapping[str, Any]) -> tuple[list[str], Iterable[list[Any]]]:
    """The names of the columns, and the rows."""
    kind = panel["kind"]
    if kind == "table":
        return [each["name"] for each in panel["columns"]], (_table_cells(panel, row) for row in panel["rows"])
    if kind == "bars":
        return [panel["part"], panel["unit"]], (
            [name, _number_text(each, panel["digits"])] for name, each in panel["parts"]
        )
    if kind == "heat":
        return _heat_as_html_rows(panel)
    if kind == "scatter":
        called = panel["called"]
        heads = [called["label"], called["group"], called["context"], panel["x"], panel["y"]]
        return heads, (
            [each["label"], each["group"], each["context"], *(_number_text(each[axis], 3, True) for axis in "xy")]
            for each in panel["points"]
        )
    if kind == "paths":
        return _paths_as_html_rows(panel)
    if kind == "curves":
        return _curves_as_html_rows(panel)
    named = zip(panel["tokens"], panel["values"], strict=True)
    return ["token", panel["unit"]], ([token, _number_text(value, panel["digits"])] for token, value in named)


def _paths_as_html_rows(panel: Mapping[str, Any]) -> tuple[list[str], Iterable[list[Any]]]:
    """Paths, a row a state: how near it is to what, its place, what made the step to it; then what is at ends alone."""
    parts = [name for name in ("attention", "cross", "rest") if any(
        step[name] is not None for path in panel["paths"] for step in path["steps"] or ())]  # fmt: skip
    curves, rows = panel["curves"], []
    empty = [None] * (len(parts) + 3)
    for nth, path in enumerate(panel["paths"]):
        places = dict(zip(panel["drawn"], path["points"], strict=True)) if path["points"] else {}
        for n, state in enumerate(panel["states"]):
            step = path["steps"][n - 1] if path["steps"] and n else dict.fromkeys(("length", *parts, "most"))
            near = [curve["paths"][nth][n] for curve in curves]
            numbers = [*near, *places.get(n, (None, None)), path["before"][n]]
            numbers += [step[part] for part in ("length", *parts)]
            shown = [_number_text(number, panel["digits"]) for number in numbers]
            rows.append([path["label"], state["name"], *shown, step["most"]])
    if any(curve["neutral"] for curve in curves):
        for n, state in enumerate(panel["states"]):
            ranges = [_neutral_range_in_html(curve["neutral"], n, panel["digits"]) for curve in curves]
            place = (panel["neutral"] if n in panel["drawn"] else None) or (None, None)
            shown = [_number_text(each, panel["digits"]) for each in place]
            rows.append(["neutral sentences", state["name"], *ranges, *shown, *empty])
    for mark in panel["marks"]:
        place = [_number_text(each, panel["digits"]) for each in mark["point"] or (None, None)]
        rows.append([f"◆ {mark['label']}", "the end", *[None] * len(curves), *place, *empty])
    for path in panel["paths"]:
        if path["refused"]:
            rows.append([path["label"], f"no shares: {path['refused']}", *[None] * (len(curves) + 2), *empty])
    shares = [{"attention": "attention", "cross": "cross-attention", "rest": "feed-forward"}[part] for part in parts]
    heads = ["path", "state", *(f"cosine to {curve['label']}" for curve in curves), "x", "y",
             "cosine to the state before", "length of the step", *shares, LARGEST_SHARES]  # fmt: skip
    return heads, rows


def _neutral_range_in_html(neutral: Mapping[str, Any] | None, state: int, digits: int) -> str | None:
    """A mean of neutral sentences with its range, in a cell."""
    if neutral is None or neutral["mean"][state] is None:
        return None
    mean, low, high = (_number_text(neutral[name][state], digits) for name in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})"


def _heat_as_html_rows(panel: Mapping[str, Any]) -> tuple[list[str], Iterable[list[Any]]]:
    """A grid of colours: its rows, and what rows and columns sum to, where it says so."""
    rows = [[name, *row] for name, row in zip(panel["rows"], panel["values"], strict=True)]
    heads, sums = [panel["unit"], *panel["columns"]], panel["sums"]
    if sums is not None:
        heads.append(sums["across"])
        rows = [[*row, each] for row, each in zip(rows, sums["rows"], strict=True)]
        rows.append([sums["down"], *sums["columns"], sums["all"]])
    return heads, (
        [row[0], *(_number_text(each, panel["digits"], panel["signed"] or "unbounded" in panel) for each in row[1:])]
        for row in rows
    )


def _curves_as_html_rows(panel: Mapping[str, Any]) -> tuple[list[str], Iterable[list[Any]]]:
    """Lines over one axis: a row for each point; of one that is the mean of several, from where, least and largest."""
    spread = any(each["since"] for each in panel["series"])
    heads = ["line", *(["from"] if spread else []), panel["x"], panel["y"], *(["least", "largest"] if spread else [])]
    rows = []
    for each in panel["series"]:
        for n, (x, y) in enumerate(zip(each["x"], each["y"], strict=True)):
            ends = (("since", x), ("low", y), ("high", y))
            first, low, high = ((each[name][n] if each[name] else own) for name, own in ends)
            numbers = [
                _number_text(one, panel["digits"], "unbounded" in panel) for one in ((y, low, high) if spread else (y,))
            ]
            rows.append([each["name"], *([str(first)] if spread else []), str(x), *numbers])
    return heads, rows


def _table_cells(panel: Mapping[str, Any], row: Iterable[Any]) -> list[Any]:
    return [_number_text(cell, c["digits"], c.get("unbounded")) for cell, c in zip(row, panel["columns"], strict=True)]


def _number_text(cell: Any, digits: int | None, unbounded: bool = False) -> Any:
    """A number as text; anything else as it is."""
    return fixed(float(cell), 3 if digits is None else digits, unbounded) if isinstance(cell, int | float) else cell


def _html_table_cell(cell: Any, escape: Escape) -> str:
    if isinstance(cell, Mapping):
        return f"<bdi>{escape(cell['left'])}<mark>{escape(cell['form'])}</mark>{escape(cell['right'])}</bdi>"
    if cell is None:
        return "–"
    name = cell.replace("\n", MARKS["\n"]) if cell.strip() else short(cell)
    return f"<bdi>{escape(name)}</bdi>"
