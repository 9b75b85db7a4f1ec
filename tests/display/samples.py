"""Panels to draw: one of each kind, and hard ones: 1 x 1, NaN, 1,000 rows, right to left."""

import math

from regard.display.panels import (
    Bars,
    Behind,
    Called,
    Column,
    Curve,
    Curves,
    Heat,
    InContext,
    Panel,
    Point,
    Scatter,
    Shares,
    Strip,
    Sums,
    Table,
    TokenText,
)

HEBREW = "שלום"
HARD = ("", " ", "\x1b[31mred", "<b>bold</b>", HEBREW, "河岸", "a\nline", "$x^2$", "x" * 80)
NAN = math.nan


def plain() -> list[Panel]:
    """One of each kind."""
    return [
        Table(name="Table", title="A table", note="One. Two.", columns=[Column("what"), Column("size", 2, bar=True)],
              rows=[["a", 1.5], ["b", -0.25], [InContext("the ", "bank", " of"), None]],
              total=["all", 1.25]),
        Bars(name="Bars", title="Some bars", unit="adds", parts=[("a", 1.5), ("b", -0.25)], whole=1.25),
        Heat(name="Heat", title="A grid", rows=["layer 0", "layer 1"], columns=["head 0", "head 1", "head 2"],
             values=[[0.1, None, 0.3], [-0.4, 0.5, -0.001]], axes=("layer", "head"), unit="share", signed=True,
             sums=Sums(rows=[0.4, 0.1], columns=[-0.3, 0.5, 0.3], all=0.5, across="a", down="b", name="c"),
             behind=Behind(note="n", texts=[TokenText(["a", "b"], "ltr")], of=[0, 0],
                           values=[[[0.1, 0.0], None, [0.2, 0.1]], [[0.0, -0.4], [0.5, 0.0], [0.0, -0.001]]])),
        Strip(name="Strip", title="A text", tokens=["a", "b"], values=[0.5, None], unit="gets"),
        Scatter(name="Scatter", title="A plane", x="across", y="up", called=Called("token", "layer"),
                points=[Point(0.0, 1.0, "a", "g"), Point(1.0, 2.0, "b", "g", 0, InContext("", "b", ""))]),
        Curves(name="Curves", title="Lines", x="layer", y="cosine",
               series=[Curve("a", [0, 1], [0.5, 0.75]),
                       Curve("b", [0, 1], [0.1, None], [0, 1], [0.0, None], [1.0, None])]),
    ]  # fmt: skip


def hard() -> list[Panel]:
    """Those that drawers fall over."""
    many = [f"{HARD[n % len(HARD)]} {n}" for n in range(1000)]
    return [
        Table(name="1 x 1", title="", columns=[Column("one")], rows=[["a"]]),
        Table(name="shares", title="", columns=[Column("what"), Column("named"), Column("size", 2, bar=True)],
              rows=[[name, Shares([(each, 0.25) for each in HARD], apart=1, mark="*"), 0.5] for name in HARD]),
        Strip(name="with bars", title="", tokens=list(HARD), values=[None, NAN, *(n / 9 for n in range(len(HARD) - 2))],
              unit="weight", full=0.5, marked=[2], special=[0]),
        Table(name="no rows", title="", columns=[Column("one", 2, bar=True)], rows=[]),
        Table(name="wide", title="", columns=[Column(f"score {n}", 3, bar=n == 1) for n in range(17)],
              rows=[[n / 7 for n in range(17)], [NAN] * 17]),
        Table(name="1,000 rows", title=HEBREW, columns=[Column("what"), Column("size", 2, bar=True)],
              rows=[[name, (-1) ** n * n / 7] for n, name in enumerate(many)]),
        Bars(name="none", title="", unit="adds", parts=[], whole=0.0),
        Bars(name="1,000 bars", title="$a$ and \x1b[2J", unit="adds", signed=False, whole=None,
             parts=[(name, 1 / (n + 1)) for n, name in enumerate(many)]),
        Bars(name="not finite", title=HEBREW, unit="adds",
             parts=[("a", NAN), ("b", -0.00001), ("c", math.inf)], whole=NAN),
        Heat(name="cell", title="", rows=["layer 3"], columns=["head 0"],
             values=[[0.0]], axes=("layer", "head"), unit=""),
        Heat(name="NaN", title="", rows=["a", "b"], columns=["c"],
             values=[[NAN], [None]], axes=("", ""), unit="", signed=True),
        Heat(name="1,000 rows of 30", title=HEBREW, rows=many, columns=many[:30], axes=("layer", "token"), unit="share",
             values=[[(r - c) / 7 for c in range(30)] for r in range(1000)], upwards=True, digits=4),
        Strip(name="1,000 tokens", title="", tokens=many, unit="gets", signed=True,
              values=[-n / 7 for n in range(1000)]),
        Strip(name="no number", title="", tokens=[HEBREW, ""], values=[NAN, None], unit="gets"),
        Scatter(name="point", title="", x="x", y="y", points=[Point(0.0, 0.0, HEBREW, "")]),
        Scatter(name="100 points", title="", x="x", y="y", points=[
            Point(n / 7, -n / 3, many[n], many[n % 5], n - 1 if n else None) for n in range(100)]),
        Curves(name="no number", title="", x="x", y="y", series=[Curve(HEBREW, [0], [None])]),
        Curves(name="1,000 steps", title="", x="x", y="y",
               series=[Curve("a", range(1000), [n / 7 for n in range(1000)])]),
    ]  # fmt: skip
