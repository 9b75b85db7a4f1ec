"""Schematic figures of attention with the real sizes and numbers: projections, one head, many heads, two sequences."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch import Tensor

from drawings.sheet import (
    INPUT,
    KEY,
    OUTPUT,
    PLAIN,
    QUERY,
    SIGNS,
    VALUE,
    arrow,
    box,
    path,
    plate,
    sheet,
    signed,
    tensor,
    write,
)
from regard.explain.weights.head_steps import HeadSteps
from regard.text.quoting import quoted

CELL = 0.1  # inches of a cell of a tensor that is drawn to scale
WIDEST = 32  # numbers of a vector that a drawing of one step shows


def projections(
    x: Float[Tensor, "L M"],
    query: Float[Tensor, "D M"],
    key: Float[Tensor, "D M"],
    value: Float[Tensor, "E M"],
    names: Sequence[str],
    at: int | None = None,
) -> Figure:
    """Draw how one input becomes queries, keys and values: each matrix to scale, a cell a number.

    The three weights are given as `W @ x` has them, and drawn turned, as `x @ Wᵀ` multiplies all tokens at once.
    at: the word whose row of x, q, k and v is framed.
    """
    length, width = x.shape
    tallest = width * CELL
    row = tallest + 0.75
    left = 0.95 + width * CELL
    across = max(len(query), len(value)) * CELL
    title = "The input, projected three times"
    title = title if at is None else f"{quoted(names[at])}, projected three times: its query, key and value are framed"
    figure, axes = sheet(left + 2 * across + 1.5, 3 * row + 0.55, title)
    middle = 1.5 * row + 0.15
    tensor(axes, 0.75, middle - length * CELL / 2, x, INPUT, "x", cell=(CELL, CELL), rows=list(names))
    for place, (letter, weight, colour) in enumerate((("q", query, QUERY), ("k", key, KEY), ("v", value, VALUE))):
        height = (2 - place) * row + row / 2 + 0.15
        start = left + 0.75
        arrow(axes, (left - 0.1, middle), (start - 0.1, height), colour=colour)
        name = f"W_{letter.upper()} transposed"
        wide, _ = tensor(axes, start, height - tallest / 2, weight.T, colour, name, cell=(CELL, CELL))
        end = start + across + 0.5
        write(axes, start + wide + 0.25, height, "→", size=12)
        tensor(axes, end, height - length * CELL / 2, x @ weight.T, colour, letter, cell=(CELL, CELL))
        if at is not None:
            _frame(axes, end, height + (length / 2 - 1 - at) * CELL, len(weight) * CELL, CELL)
    if at is not None:
        _frame(axes, 0.75, middle + (length / 2 - 1 - at) * CELL, width * CELL, CELL)
    write(axes, 0.2, 0.16, SIGNS, size=7.5, align="left")
    return figure


def without_projections(
    x: Float[Tensor, "L M"],
    scores: Float[Tensor, "L L"],
    weights: Float[Tensor, "L L"],
    output: Float[Tensor, "L M"],
    names: Sequence[str],
    at: int,
    scaled: str = "",
) -> Figure:
    """Draw attention that has no parameters, as a box that X goes into and Y comes out of, one word's row marked.

    at: the word. scaled: the divisor of the scores, where they are divided. Of wide vectors the first 16 numbers are
    drawn.
    """
    thin, (count, width) = 0.07, x.shape
    cell = min(0.2, 1.75 / count)
    tall, wide, strip = count * cell, count * cell, min(16, width) * thin
    further = 0.45 * bool(scaled)
    figure, axes = sheet(4.2 + 2 * strip + 2 * wide + further, tall + 1.95, "Attention without parameters")
    base, start = 0.75, 0.95
    middle = base + tall / 2
    after = start + strip + wide + 1.5 + further
    places = [start, start + strip + 0.65, after, after + wide + 0.95]
    across = 2 * wide + 1.25 + further
    frame = Rectangle((places[1] - 0.2, base - 0.3), across, tall + 0.72, fill=False, edgecolor=PLAIN, ls="--")
    axes.add_patch(frame)
    write(axes, places[1] - 0.15, base + tall + 0.56, "the box: it keeps the size of what it is given", align="left")
    for x_at, values, colour, name, across in (
        (places[0], x[:, :16], INPUT, "X", thin),
        (places[1], scores, PLAIN, "S = X Xᵀ", cell),
        (places[2], weights, QUERY, "A, rows sum to 1", cell),
        (places[3], output[:, :16], OUTPUT, "Y = A X", thin),
    ):
        rows = list(names) if name == "X" else None
        tensor(axes, x_at, base, values, colour, name, cell=(across, cell), rows=rows, sizes=False)
        size = f"{count} × {width if across == thin else count}"
        write(axes, x_at + values.shape[1] * across / 2, base - 0.14, size, size=8)
        _frame(axes, x_at, base + (count - 1 - at) * cell, values.shape[1] * across, cell)
    softmax = f"÷ {scaled}, softmax" if scaled else "softmax"
    for end, how, gap in ((places[1], "", 0.55), (places[2], softmax, 0.75 + further), (places[3], "mix X", 0.75)):
        arrow(axes, (end - gap, middle), (end - 0.08, middle), how)
    told = f"framed: {quoted(names[at])}, its scores, weights and y; of {width} numbers the first 16 are drawn"
    told += "; red: negative"
    write(axes, 0.2, 0.16, told, size=7.5, align="left")
    return figure


def three_steps(
    x: Float[Tensor, "L M"],
    products: Float[Tensor, " L"],
    weights: Float[Tensor, " L"],
    names: Sequence[str],
    word: str,
) -> Figure:
    """Draw how one word becomes a mixture: its dot products with all words, their weights, and the weighted sum.

    Of wide vectors the first 16 numbers are drawn.
    """
    count, lines = len(names), range(len(names))
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1, 1, 1.4))
    for axes, values, colour, title in (
        (left, products, PLAIN, f"1. dot product with {quoted(word)}"),
        (middle, weights, QUERY, f"2. ÷ √{x.shape[1]}, softmax: the weights"),
    ):
        axes.barh(lines, values.tolist(), color=colour)
        axes.set_yticks(lines, names if axes is left else [""] * count)
        axes.set_ylim(count + 0.9, -0.6)  # as the rows of step 3
        axes.margins(x=0.18)
        for line, value in enumerate(values.tolist()):
            axes.text(max(value, 0), line, f" {value:z.3f}", va="center", fontsize=8)
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(title, fontsize=10)
    middle.axvline(1 / count, color="black", linestyle=":", linewidth=1, zorder=0)
    middle.text(1 / count, count + 0.4, f"equal weights: 1/{count}", ha="right", fontsize=8)
    parts = (weights[:, None] * x)[:, :16]
    rows = torch.cat([parts, torch.full_like(parts[:1], torch.nan), parts.sum(0, keepdim=True)])
    largest = float(rows.nan_to_num().abs().max())
    right.imshow(rows, cmap=signed(), vmin=-largest, vmax=largest, aspect="auto", interpolation="nearest")
    right.set_yticks([*lines, count + 1], [*names, f"sum: {word}, mixed"])
    right.set_xticks([])
    right.spines[:].set_visible(False)
    right.tick_params(length=0)
    right.set_title("3. weight × vector, added up", fontsize=10)
    right.set_xlabel("the first 16 numbers; red is negative", fontsize=8)
    return figure


def head_step(
    steps: HeadSteps, query: str, keys: Sequence[str], step: str, letters: tuple[str, str, str] = ("q", "K", "V")
) -> Figure:
    """Draw one step of one query through one head, with its numbers: its "scores", "weights" or "output".

    letters: of the query, the keys and the values. Of wide vectors the first 32 numbers are drawn.
    """
    cell, tall, number = 0.075, 0.27, 0.66
    height, base, at = len(keys) * tall, 0.75, 0.85
    top, middle = base + height, base + height / 2
    key, value, mixed = (part[:, :WIDEST] for part in (steps.key, steps.value, steps.weighted))
    depth, wide = key.shape[1] * cell, value.shape[1] * cell
    hidden = " · ".join({f"the first {WIDEST} of {n} numbers are drawn" for n in (steps.key.shape[1],) if n > WIDEST})
    rows = list(keys)
    if step == "scores":
        figure, axes = sheet(depth + 3.6, height + 2.15, f"{quoted(query)} and each word: dot products")
        tensor(axes, at, top + 0.62, steps.query[None, :WIDEST], QUERY, f"{letters[0]} of {quoted(query)}",
               cell=(cell, 0.16), sizes=False)  # fmt: skip
        write(axes, at + depth / 2, top + 0.45, "×", size=11)
        tensor(axes, at, base, key, KEY, letters[1], cell=(cell, tall), rows=rows, sizes=False)
        end = at + depth + 0.95
        arrow(axes, (at + depth + 0.06, middle), (end - 0.06, middle), "add up")
        tensor(axes, end, base, steps.products, PLAIN, "product", cell=(number, tall), digits=2, sizes=False)
    elif step == "weights":
        figure, axes = sheet(3 * number + 4.2, height + 1.45, f"Weights of {quoted(query)}: they sum to 1")
        for values, name, colour, digits, how in (
            (steps.products, "product", PLAIN, 2, ""),
            (steps.scores, "score", PLAIN, 3, f"× {steps.scale:.3f}"),
            (steps.weights, "weight", QUERY, 4, "softmax"),
        ):
            if how:
                arrow(axes, (at - 0.78, middle), (at - 0.06, middle), how)
            names = None if how else rows
            tensor(axes, at, base, values, colour, name, cell=(number, tall), digits=digits, rows=names, sizes=False)
            at += number + 0.84
        hidden = f"{steps.scale:.3f} = 1 / √{round(steps.scale**-2)}"
    else:
        figure, axes = sheet(number + 2 * wide + 2.9, height + 1.95, f"Output of {quoted(query)}: a weighted sum")
        base, middle = base + 0.5, middle + 0.5
        tensor(axes, at, base, steps.weights, QUERY, "weight", cell=(number, tall), digits=4, rows=rows, sizes=False)
        write(axes, at + number + 0.2, middle, "×", size=13)
        at += number + 0.4
        tensor(axes, at, base, value, VALUE, letters[2], cell=(cell, tall), sizes=False)
        write(axes, at + wide + 0.25, middle, "=", size=13)
        at += wide + 0.5
        tensor(axes, at, base, mixed, OUTPUT, "weight × row", cell=(cell, tall), sizes=False)
        arrow(axes, (at + wide / 2, base - 0.05), (at + wide / 2, base - 0.33), colour=OUTPUT)
        write(axes, at + wide / 2 - 0.1, base - 0.19, f"add the {len(keys)} rows", size=8, align="right")
        tensor(axes, at, base - 0.53, steps.context[None, :WIDEST], OUTPUT, "", cell=(cell, 0.18), sizes=False)
        name = f"output of {quoted(query)}"
        write(axes, at - 0.1, base - 0.44, name, size=8, colour=OUTPUT, align="right", weight="bold")
    write(axes, 0.2, 0.2, "; ".join(filter(None, [hidden, "red: negative"])), size=7.5, align="left")
    return figure


def head_block(
    x: Float[Tensor, "L M"],
    projected: tuple[Float[Tensor, "L D"], Float[Tensor, "L D"], Float[Tensor, "L E"]],
    weights: Float[Tensor, "L L"],
    output: Float[Tensor, "L E"],
    names: Sequence[str],
) -> Figure:
    """Draw a whole head with its numbers: the input, queries, keys and values, the weights, the output.

    Of a wide input the first 16 numbers are drawn.
    """
    length, width = x.shape
    cell, square = 0.055, max(0.11, 0.9 / length)
    tall, wide = length * square, max(part.shape[1] for part in projected) * cell
    grid = max(tall, 1.5)
    figure, axes = sheet(
        wide + grid + output.shape[1] * cell + 5.1, 3 * tall + 2.4, "A head, from its input to its output"
    )
    shown, row, base = x[:, :16], tall + 0.55, 0.6
    middle, start = base + row + tall / 2, 0.85 + min(16, width) * 0.07 + 1.0
    tensor(axes, 0.85, middle - tall / 2, shown, INPUT, "X", cell=(0.07, square), rows=list(names), sizes=False)
    write(axes, 0.85 + shown.shape[1] * 0.035, middle - tall / 2 - 0.13, f"{length} × {width}", size=8)
    at = start + wide + 0.85
    for place, (letter, part, colour) in enumerate(zip("QKV", projected, (QUERY, KEY, VALUE), strict=True)):
        low = base + (2 - place) * row
        arrow(axes, (start - 0.95, middle), (start - 0.08, low + tall / 2), colour=colour)
        tensor(axes, start, low, part, colour, f"{letter} = X W_{letter}", cell=(cell, square))
    score = base + 1.5 * row + tall / 2 - grid / 2  # between queries and keys
    ends = [start + part.shape[1] * cell + 0.08 for part in projected]
    arrow(axes, (ends[0], base + 2 * row + tall / 2), (at - 0.08, score + 0.75 * grid), colour=QUERY)
    arrow(axes, (ends[1], middle), (at - 0.08, score + 0.25 * grid), colour=KEY)
    name = f"softmax(Q Kᵀ / √{projected[1].shape[1]})"
    tensor(axes, at, score, weights, QUERY, name, cell=(grid / length, grid / length))
    end = at + grid + 0.85
    arrow(axes, (at + grid + 0.08, score + grid / 2), (end - 0.08, score + grid / 2), "× V", colour=OUTPUT)
    out = score + grid / 2 - tall / 2
    tensor(axes, end, out, output, OUTPUT, "output", cell=(cell, square))
    corner = end - 0.45
    path(axes, [(ends[2], base + tall / 2), (corner, base + tall / 2), (corner, score + grid / 2 - 0.06)], colour=VALUE)
    hidden = f"of {width} numbers of X the first 16 are drawn; " if width > 16 else ""
    write(axes, 0.2, 0.16, hidden + SIGNS, size=7.5, align="left")
    return figure


def two_texts(
    texts: Sequence[tuple[str, Sequence[str], Sequence[str], Float[Tensor, "L D"]]],
    title: str,
    word: str,
    told: str,
    colour: str = OUTPUT,
) -> Figure:
    """Draw the vectors of two texts side by side with their numbers, the row of one word framed.

    texts: of each text its name, its words, names of the columns, and a row for each word. told: what to see in the
    framed rows.
    """
    number, tall = 0.7, 0.34
    wide = [rows.shape[1] * number for *_, rows in texts]
    named = 0.22 * any(columns for _, _, columns, _ in texts)
    figure, axes = sheet(sum(wide) + 1.15 * len(texts), len(texts[0][1]) * tall + 1.4 + named, title)
    limit = max(float(rows.abs().max()) for *_, rows in texts)
    at, base = 0.85, 0.55
    for (name, words, columns, rows), across in zip(texts, wide, strict=True):
        cell = (number, tall)
        _, height = tensor(
            axes, at, base, rows, colour, "", cell=cell, digits=2, rows=list(words), sizes=False, limit=limit
        )
        write(axes, at + across / 2, base + height + 0.16 + named, name, colour=colour, weight="bold")
        for n, column in enumerate(columns):
            write(axes, at + (n + 0.5) * number, base + height + 0.12, column, size=8)
        _frame(axes, at, base + (len(words) - 1 - list(words).index(word)) * tall, across, tall)
        at += across + 1.15
    write(axes, 0.2, 0.22, told, size=9, align="left")
    return figure


def single_head(steps: HeadSteps, query: str, keys: Sequence[str]) -> Figure:
    """Draw one query's way through one head, from left to right, with its numbers: scores, weights, and what is mixed.

    steps: of `regard.explain.weights.head_steps.steps`. query, keys: the words they belong to.
    """
    count, depth, wide = len(keys), len(steps.query), steps.value.shape[1]
    cell, tall = 0.075, 0.3
    height = count * tall
    number = 0.62
    figure, axes = sheet(
        depth * cell + wide * cell + 3 * number + 3.35, height + 2.4, f"One head, for the word {quoted(query)}"
    )
    base, top = 1.0, 1.0 + height
    at = 0.85
    tensor(axes, at, top + 0.55, steps.query[None], QUERY, f"query of {quoted(query)}", cell=(cell, 0.16))
    tensor(axes, at, base, steps.key, KEY, "", cell=(cell, tall), rows=list(keys))
    write(axes, at + depth * cell / 2, top + 0.2, "· keys", colour=KEY, weight="bold")
    at += depth * cell + 0.55
    stages = (
        (steps.products, "q · k", PLAIN, "add up"),
        (steps.scores, f"/ √{round(steps.scale**-2)}", PLAIN, "scale"),
        (steps.weights, "weights", QUERY, "softmax"),
    )
    for values, name, colour, how in stages:
        arrow(axes, (at - 0.42, base + height / 2), (at - 0.06, base + height / 2))
        write(axes, at - 0.24, base + height / 2 + 0.14, how, size=7.5)
        digits = 4 if name == "weights" else 2
        tensor(axes, at, base, values, colour, name, cell=(number, tall), digits=digits)
        at += number + 0.52
    write(axes, at - 0.24, base + height / 2, "×", size=13)
    tensor(axes, at, base, steps.value, VALUE, "values", cell=(cell, tall), rows=None)
    arrow(axes, (at + wide * cell / 2, base - 0.24), (at + wide * cell / 2, base - 0.46), colour=OUTPUT)
    write(axes, at + wide * cell / 2 + 0.1, base - 0.34, "weighted sum", size=7.5, align="left")
    tensor(axes, at, base - 0.68, steps.context[None], OUTPUT, "", cell=(cell, 0.16), sizes=False)
    write(axes, at + wide * cell / 2, base - 0.84, f"context of {quoted(query)}: 1 × {wide}", size=8, colour=OUTPUT)
    write(axes, 0.2, 0.16, SIGNS, size=7.5, align="left")
    return figure


def multi_head(tokens: int, d_model: int, heads: int, d_k: int, d_v: int, *, output: bool = True) -> Figure:
    """Draw several heads side by side, from the input to the output projection, with every size.

    output: whether there is such a projection; else the heads are joined, and that is all.
    """
    figure, axes = sheet(11.2 if output else 9.4, 4.6, f"{heads} heads: each reads all {d_model} numbers of a token")
    plate(axes, 0.3, 1.5, 0.8, 1.3, INPUT, f"x\n{tokens} × {d_model}")
    shown = min(heads, 4)
    foot = min(4 - shown, 1) * 0.8
    figure.set_figheight(4.6 - foot)
    axes.set_ylim(foot, 4.6)
    for place in range(shown):
        last = place == shown - 1
        low = 3.3 - place * 0.86 - (0.25 if last and heads > shown else 0)
        name = f"head {heads - 1 if last else place}"
        arrow(axes, (1.1, 2.15), (1.75, low + 0.3), colour=INPUT)
        for n, (letter, width, colour) in enumerate((("q", d_k, QUERY), ("k", d_k, KEY), ("v", d_v, VALUE))):
            box(axes, 1.8 + n * 0.98, low, 0.9, 0.6, f"W_{letter.upper()}\n{d_model} × {width}", colour, size=8)
        arrow(axes, (4.7, low + 0.3), (4.98, low + 0.3))
        box(axes, 5.0, low, 1.75, 0.6, f"softmax(q kᵀ / √{d_k}) v\n{tokens} × {tokens} weights", QUERY, size=8)
        arrow(axes, (6.75, low + 0.3), (7.02, low + 0.3))
        box(axes, 7.05, low, 0.75, 0.6, f"{name}\n{tokens} × {d_v}", VALUE, size=8)
        arrow(axes, (7.8, low + 0.3), (8.28, 2.15 + (1.5 - place) * 0.2), colour=VALUE)
    if heads > shown:
        write(axes, 5.85, 3.3 - (shown - 1) * 0.86 + 0.47, f"… {heads - shown} more", size=9)
    box(axes, 8.3, 1.5, 0.85, 1.3, f"joined\n{tokens} × {heads * d_v}", VALUE, size=8)
    if output:
        arrow(axes, (9.15, 2.15), (9.38, 2.15))
        box(axes, 9.4, 1.5, 0.75, 1.3, f"W_O\n{heads * d_v} × {d_model}", OUTPUT, size=8)
        arrow(axes, (10.15, 2.15), (10.28, 2.15))
        box(axes, 10.3, 1.5, 0.7, 1.3, f"output\n{tokens} × {d_model}", OUTPUT, size=8)
    weights = heads * d_model * (2 * d_k + d_v) + heads * d_v * d_model * output
    write(axes, 0.3, foot + 0.2, f"weights in all: {weights:,}", size=8, align="left")
    return figure


def cross_attention(
    x: Float[Tensor, "L M"],
    context: Float[Tensor, "S C"],
    weights: Float[Tensor, "L S"],
    output: Float[Tensor, "L E"],
    names: tuple[str, str] = ("one text", "another text"),
    widths: tuple[int, int] = (24, 28),
) -> Figure:
    """Draw attention of one sequence to another: who asks, who answers, the weights between them, what comes out.

    widths: of queries and keys, and of values.
    """
    length, count = weights.shape
    cell = 0.11
    figure, axes = sheet(11.0, 4.3, f"{length} queries look at {count} keys of another sequence")
    x_wide, x_tall = tensor(axes, 0.5, 2.75, x, INPUT, names[0], cell=(cell, cell))
    c_wide, c_tall = tensor(axes, 0.5, 0.75, context, INPUT, names[1], cell=(cell, cell))
    up, low = 2.75 + x_tall / 2, 0.75 + c_tall / 2
    box(axes, 3.1, up - 0.25, 1.35, 0.5, f"queries {length} × {widths[0]}", QUERY)
    box(axes, 3.1, low + 0.08, 1.35, 0.5, f"keys {count} × {widths[0]}", KEY)
    box(axes, 3.1, low - 0.58, 1.35, 0.5, f"values {count} × {widths[1]}", VALUE)
    arrow(axes, (0.55 + x_wide, up), (3.05, up), "W_Q", colour=QUERY)
    arrow(axes, (0.55 + c_wide, low + 0.1), (3.05, low + 0.33), "W_K", colour=KEY)
    arrow(axes, (0.55 + c_wide, low - 0.1), (3.05, low - 0.33), "W_V", colour=VALUE, above=-0.14)
    wide, tall = count * 0.28, length * 0.28
    at, base = 5.2, 2.55 - tall / 2
    tensor(axes, at, base, weights, QUERY, "weights: each row sums to 1", cell=(0.28, 0.28))
    arrow(axes, (4.45, up), (at - 0.06, base + tall * 0.75), colour=QUERY)
    arrow(axes, (4.45, low + 0.33), (at - 0.06, base + tall * 0.3), colour=KEY)
    out, _ = tensor(axes, 8.1, base + tall / 2 - length * 0.045, output, OUTPUT, "output", cell=(0.09, 0.09))
    arrow(axes, (at + wide + 0.06, base + tall / 2), (8.04, base + tall / 2), colour=OUTPUT)
    path(axes, [(4.45, low - 0.33), (8.1 + out / 2, low - 0.33), (8.1 + out / 2, base + tall / 2 - 0.55)], colour=VALUE)
    write(axes, 6.4, low - 0.2, "mixed by the weights", size=8, colour=VALUE)
    write(axes, 0.2, 0.16, SIGNS, size=7.5, align="left")
    return figure


def _frame(axes: Axes, x: float, y: float, width: float, height: float) -> None:
    """Frame a row that is followed, x and y at its lower left."""
    axes.add_patch(Rectangle((x, y), width, height, fill=False, edgecolor="black", linewidth=1.8, zorder=3))
