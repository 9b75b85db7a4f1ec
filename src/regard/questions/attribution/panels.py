"""Show what contributes to an outcome: components, source tokens, heads and layers."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from regard.capture.score_path import Side
from regard.display.panels import Bars, Behind, Cell, Column, Heat, Panel, Strip, Table, TokenText
from regard.questions.attribution.sentences import plain, source_token
from regard.text.quoting import direction
from regard.text.tokens import Token

if TYPE_CHECKING:
    from regard.questions.attribution.direct import Attribution
    from regard.questions.attribution.heads import HeadAttribution
    from regard.questions.attribution.tokens import TokenAttribution

Row = tuple[Side | None, bool, int]
Heads = dict[Row, dict[int, list[float]]]
CHOOSE = "Choose a head to see its source tokens."
COMPONENTS = "Components"  # the tab of what is listed by its parts
COLOURS = "Red increases the outcome, blue reduces it."


def of_parts(result: "Attribution") -> list[Panel]:
    """Show a grid of the heads, source tokens, layers, and bars of all components."""
    heads, words = _heads_by_source(result), result.unit == "word"
    sources = [
        (source_token(name), value) for name, value in result.by("source", words=words) if "attention from " in name
    ]
    return [
        *([_head_grid(result, heads)] if heads else []),
        *(_source_strip(result, heads, side) for side in dict.fromkeys(map(_text_of_row, heads))),
        _layers(result),
        Bars(
            name="Components", title=result.title(), note=f"Heads are split by source {result.unit}", part="component",
            unit="contribution", whole=result.value, parts=short_heads(result.by("token", words=words)), screen=True,
            picture=True, tab=COMPONENTS,
        ),
        Bars(
            name="Sources", title=f"Contributions of attention by source {result.unit}, summed over heads",
            part=f"source {result.unit}", unit="contribution", parts=sources,
            whole=sum((value for _, value in sources), 0.0), screen=True, tab=COMPONENTS,
        ),
        Bars(
            name="Writers", title="Contributions of heads, layers and embeddings", part="component",
            unit="contribution", whole=result.value, parts=short_heads(result.by()),
            note="A head's contribution is summed over source tokens.", tab=COMPONENTS,
        ),
    ]  # fmt: skip


def short_heads(parts: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """Shorten head names for tables and plots: "layer 5, head 7" to L5H7."""
    return [(re.sub(r"layer (\d+), (cross )?head (\d+)", r"\2L\1H\3", name), value) for name, value in parts]


def of_tokens(result: "TokenAttribution") -> list[Panel]:
    """Show the text, coloured by its tokens' scores, and each token or word by its score."""
    method = f"Method: {result.method}"
    if result.baseline is not None:
        method += f", {result.steps} steps from the baseline (outcome {plain(result.baseline)})"
    bars = Bars(
        name=f"Every {result.unit}", title=result.title(), note=f"{method}.", unit="contribution", part=result.unit,
        parts=result.by(result.unit), whole=float(result.scores.sum()), screen=True, picture=True, caption=f"{method}.",
    )  # fmt: skip
    stops = list(accumulate(result.sides))
    strips = []
    for side, stop in enumerate(stops):
        own = range(stop - result.sides[side], stop)
        of = f" of the {('source', 'target')[side]}" if len(stops) > 1 else ""
        strips.append(
            Strip(
                name=f"Tokens{of}", title=f"Contribution of each token{of}", note=COLOURS, unit="contribution",
                tokens=[result.tokens[n].text for n in own], values=[float(result.scores[n]) for n in own], signed=True,
            )
        )  # fmt: skip
    return [*strips, bars]


def of_heads(result: "HeadAttribution") -> list[Panel]:
    """Show a grid of the heads, with each head's source tokens, and the heads as bars."""
    count = max(map(len, result.scores))
    texts = list(dict.fromkeys(map(tuple, result.tokens)))
    behind = Behind(
        note="The head's contribution, split by the token that it attends to.",
        texts=[_attributed_tokens_as_text(text) for text in texts],
        of=[texts.index(tuple(own)) for own in result.tokens],
        values=[[own[h].tolist() if h < len(own) else None for h in range(count)] for own in result.sources],
    )
    grid = Heat(
        name="Heads", title="Estimated contribution of each head", note=f"{COLOURS} {CHOOSE}", axes=("layer", "head"),
        rows=result.call_names, columns=[f"head {n}" for n in range(count)], unit="contribution", signed=True,
        behind=behind, picture=True,
        values=[[float(own[h]) if h < len(own) else None for h in range(count)] for own in result.scores],
    )  # fmt: skip
    bars = Bars(
        name="Every head", title=result.title(), unit="contribution", part="head", parts=short_heads(result.by()),
        screen=True,
    )  # fmt: skip
    return [grid, bars]


def _heads_by_source(result: "Attribution") -> Heads:
    """Return the contributions of source tokens by row and head. Row: stack, whether cross-attention, layer."""
    heads: Heads = {}
    for each, value in zip(result.parts.writers, result.parts.vectors[:, 0].tolist(), strict=True):
        if each.kind == "attention" and each.head is not None:
            assert each.layer is not None and each.source is not None  # noqa: PT018
            row = each.side, each.cross, each.layer
            empty = [0.0] * len(result.tokens[_text_of_row(row)])
            heads.setdefault(row, {}).setdefault(each.head, empty)[each.source] += value
    order = {None: 0, "encoder": 1, "decoder": 2}
    return dict(sorted(heads.items(), key=lambda item: (order[item[0][0]], item[0][2], item[0][1])))


def _text_of_row(row: Row) -> Side | None:
    """Return the stack whose text a row's heads attend to."""
    return "encoder" if row[1] else row[0]


def _head_grid(result: "Attribution", heads: Heads) -> Heat:
    """Show each head's contribution, and behind it that from each source token."""
    count = 1 + max(max(own) for own in heads.values())
    each = [[own.get(head) for head in range(count)] for own in heads.values()]
    sides = list(dict.fromkeys(map(_text_of_row, heads)))
    behind = Behind(
        note="The head's contribution, split by the token that it attends to.",
        texts=[_attributed_tokens_as_text(result.tokens[side]) for side in sides],
        of=[sides.index(_text_of_row(row)) for row in heads],
        values=each,
    )
    names = [f"{side} layer {n}{', cross' * cross}" if side else f"layer {n}" for side, cross, n in heads]
    return Heat(
        name="Heads", title="Contribution of each head", note=f"{COLOURS} {CHOOSE}",
        rows=names, columns=[f"head {n}" for n in range(count)],
        values=[[None if own is None else sum(own) for own in row] for row in each], axes=("layer", "head"),
        unit="contribution", signed=True, behind=behind,
    )  # fmt: skip


def _source_strip(result: "Attribution", heads: Heads, side: Side | None) -> Strip:
    """Show the contribution of attention to each token of a text, summed over heads."""
    taken = [own for row, each in heads.items() if _text_of_row(row) == side for own in each.values()]
    of = "" if side is None else f" of the {side}"
    return Strip(
        name=f"Source tokens{of}", title=f"Source tokens{of}", tokens=[token.text for token in result.tokens[side]],
        values=[sum(each) for each in zip(*taken, strict=True)], signed=True, unit="contribution",
        note="Direct contributions by attention to each token, summed over heads. Paths through other tokens are not "
        "included.",
    )  # fmt: skip


def _layers(result: "Attribution") -> Table:
    """Show each layer's contribution, by its attention, feed-forward block and biases."""
    kinds = ("attention", "feed-forward", "bias")
    layers: dict[tuple[str, int | None], dict[str, float]] = {}
    for each, value in zip(result.parts.writers, result.parts.vectors[:, 0].tolist(), strict=True):
        sums = layers.setdefault((each.side or "", each.layer), dict.fromkeys(("other", *kinds), 0.0))
        sums[each.kind if each.kind in kinds and each.layer is not None else "other"] += value
    rows: list[list[Cell]] = []
    for (side, layer), sums in sorted(
        layers.items(), key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1])
    ):
        name = "outside the layers" if layer is None else f"layer {layer}"
        own: list[Cell] = [None if layer is None else sums[kind] for kind in kinds]
        rows.append([f"{side} {name}".strip(), sum(sums.values()), *own])
    totals = [sum(sums[kind] for (_, n), sums in layers.items() if n is not None) for kind in kinds]
    parts = (Column(kind, 2, signed=True) for kind in ("attention", "feed-forward", "biases"))
    return Table(
        name="Layers", title="Contribution of each layer", rows=rows,
        note="The layers, the embeddings and the other biases (outside the layers) sum to the outcome.",
        total=["all", result.value, *totals],
        columns=[Column("layer"), Column("sum", 2, bar=True, signed=True), *parts],
    )  # fmt: skip


def _attributed_tokens_as_text(tokens: Sequence[Token]) -> TokenText:
    text = [token.text for token in tokens]
    return TokenText(text, direction("".join(text)))
