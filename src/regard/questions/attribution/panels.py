"""What made an outcome, as panels: its parts, the source tokens, the heads and the layers."""

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from regard.capture.score_path import Side
from regard.display.panels import Bars, Behind, Cell, Column, Heat, Panel, Strip, Table, TokenText
from regard.questions.attribution.sentences import named_head
from regard.text.direction import direction
from regard.text.tokens import Token

if TYPE_CHECKING:
    from regard.questions.attribution.direct import Attribution
    from regard.questions.attribution.heads import HeadAttribution
    from regard.questions.attribution.tokens import TokenAttribution

Row = tuple[Side | None, bool, int]
Heads = dict[Row, dict[int, list[float]]]
CHOOSE = "Choose a head: from which tokens."
PARTS = "Parts"  # the tab of what is listed by its parts
COLOURS = "Red: adds to it; blue: takes away from it."


def of_parts(found: "Attribution") -> list[Panel]:
    """Show the heads, what they took from each token, the layers, and all parts as bars."""
    heads, words = _what_heads_took(found), found.unit == "word"
    carried = [each for each in found.by("source", words=words) if "attention from " in each[0]]
    return [
        *([_head_grid(found, heads)] if heads else []),
        *(_source_strip(found, heads, side) for side in dict.fromkeys(map(_text_of_row, heads))),
        _layers(found),
        Bars(
            name="Parts", title=f"The largest parts, heads by source {found.unit}", unit="adds", whole=found.value,
            parts=found.by("token", words=words), screen=True, picture=True, tab=PARTS,
        ),
        Bars(
            name="Sources", title=f"By attention, from each source {found.unit}", unit="adds", parts=carried,
            whole=sum((added for _, added in carried), 0.0), screen=True, tab=PARTS,
        ),
        Bars(
            name="Writers", title="What each head, layer and embedding adds", unit="adds", whole=found.value,
            parts=found.by(), note="One part is what a head adds by looking at all tokens.", tab=PARTS,
        ),
    ]  # fmt: skip


def of_tokens(found: "TokenAttribution") -> list[Panel]:
    """Show the text, coloured by its tokens' scores, and each token or word by its score."""
    against = "" if found.baseline is None else f", beside a baseline of {found.baseline:.4g}"
    bars = Bars(
        name=f"Every {found.unit}", title=f"What each {found.unit} brings, by {found.method}{against}", unit="score",
        part=found.unit, parts=found.by(found.unit), whole=float(found.scores.sum()), screen=True, picture=True,
        caption=f"By {found.method}{against}.",
    )  # fmt: skip
    stops = list(accumulate(found.sides))
    strips = []
    for side, stop in enumerate(stops):
        own = range(stop - found.sides[side], stop)
        of = f" of the {('source', 'target')[side]}" if len(stops) > 1 else ""
        strips.append(
            Strip(
                name=f"Tokens{of}", title=f"What each token{of} brings", note=f"By {found.method}. {COLOURS}",
                tokens=[found.tokens[n].text for n in own], values=[float(found.scores[n]) for n in own], signed=True,
                unit="score",
            )
        )  # fmt: skip
    return [*strips, bars]


def of_heads(found: "HeadAttribution") -> list[Panel]:
    """Show the grid of heads, behind each what it took from every token, and the heads by their numbers."""
    count = max(map(len, found.scores))
    caption = "What one head brings beside an ablated one, to the first order."
    note = f"{caption} {COLOURS} {CHOOSE}"
    texts = list(dict.fromkeys(map(tuple, found.tokens)))
    behind = Behind(
        note="What this head brings by looking at each token. The numbers sum to the head's.",
        texts=[_attributed_tokens_as_text(text) for text in texts],
        of=[texts.index(tuple(own)) for own in found.tokens],
        values=[[own[h].tolist() if h < len(own) else None for h in range(count)] for own in found.sources],
    )
    grid = Heat(
        name="Heads", title="What each head brings", note=note, caption=caption, axes=("layer", "head"),
        rows=[named_head(call, 0).removesuffix(", head 0") for call in found.calls],
        columns=[f"head {n}" for n in range(count)], unit="brings", signed=True, behind=behind, picture=True,
        values=[[float(own[h]) if h < len(own) else None for h in range(count)] for own in found.scores],
    )  # fmt: skip
    bars = Bars(
        name="Every head", title="The heads that bring or take away most", unit="brings", part="head", parts=found.by(),
        screen=True,
    )  # fmt: skip
    return [grid, bars]


def _what_heads_took(found: "Attribution") -> Heads:
    """The numbers of each source token, by row and head. Row: whose stream, whether across, and layer, in order."""
    heads: Heads = {}
    for each, value in zip(found.parts.writers, found.parts.vectors[:, 0].tolist(), strict=True):
        if each.kind == "attention" and each.head is not None:
            assert each.layer is not None and each.source is not None  # noqa: PT018
            row = each.side, each.cross, each.layer
            empty = [0.0] * len(found.tokens[_text_of_row(row)])
            heads.setdefault(row, {}).setdefault(each.head, empty)[each.source] += value
    order = {None: 0, "encoder": 1, "decoder": 2}
    return dict(sorted(heads.items(), key=lambda item: (order[item[0][0]], item[0][2], item[0][1])))


def _text_of_row(row: Row) -> Side | None:
    """The text that a row's heads look at."""
    return "encoder" if row[1] else row[0]


def _head_grid(found: "Attribution", heads: Heads) -> Heat:
    """Each head's sum, and behind it what it took from each token."""
    count = 1 + max(max(own) for own in heads.values())
    each = [[own.get(head) for head in range(count)] for own in heads.values()]
    sides = list(dict.fromkeys(map(_text_of_row, heads)))
    behind = Behind(
        note="What this head added by looking at each token: its weight on the token, times what it writes there, read "
        "in the direction of the outcome. The numbers sum to the head's.",
        texts=[_attributed_tokens_as_text(found.tokens[side]) for side in sides],
        of=[sides.index(_text_of_row(row)) for row in heads],
        values=each,
    )
    names = [f"{side} layer {n}{', cross' * cross}" if side else f"layer {n}" for side, cross, n in heads]
    return Heat(
        name="Heads", title="What each head adds",
        note=f"What one head added to the {found.outcome}, over all tokens that it looked at. {COLOURS} {CHOOSE}",
        rows=names, columns=[f"head {n}" for n in range(count)],
        values=[[None if own is None else sum(own) for own in row] for row in each], axes=("layer", "head"),
        unit="adds", signed=True, behind=behind,
    )  # fmt: skip


def _source_strip(found: "Attribution", heads: Heads, side: Side | None) -> Strip:
    """What attention took from each token of a text, over all heads and layers."""
    taken = [own for row, each in heads.items() if _text_of_row(row) == side for own in each.values()]
    of = "" if side is None else f" of the {side}"
    return Strip(
        name=f"Source tokens{of}", title=f"Source tokens{of}", tokens=[token.text for token in found.tokens[side]],
        values=[sum(each) for each in zip(*taken, strict=True)], signed=True, unit="adds",
        note=f"What attention added to the {found.outcome} by looking at each token{of}, over all heads and layers "
        "that wrote it there. What a token brought through other tokens first is theirs.",
    )  # fmt: skip


def _layers(found: "Attribution") -> Table:
    """What each layer added, by its attention, its feed-forward block and its biases."""
    kinds = ("attention", "feed-forward", "bias")
    layers: dict[tuple[str, int | None], dict[str, float]] = {}
    for each, value in zip(found.parts.writers, found.parts.vectors[:, 0].tolist(), strict=True):
        sums = layers.setdefault((each.side or "", each.layer), dict.fromkeys(("other", *kinds), 0.0))
        sums[each.kind if each.kind in kinds and each.layer is not None else "other"] += value
    rows: list[list[Cell]] = []
    for (side, layer), sums in sorted(
        layers.items(), key=lambda item: (item[0][0], -1 if item[0][1] is None else item[0][1])
    ):
        name = "embeddings, and biases of no layer" if layer is None else f"layer {layer}"
        own: list[Cell] = [None if layer is None else sums[kind] for kind in kinds]
        rows.append([f"{side} {name}".strip(), sum(sums.values()), *own])
    totals = [sum(sums[kind] for (_, n), sums in layers.items() if n is not None) for kind in kinds]
    parts = (Column(kind, 2, signed=True) for kind in ("attention", "feed-forward", "its biases"))
    return Table(
        name="Layers", title="What each layer adds", note=f"All: the {found.outcome}.", rows=rows,
        total=["all", found.value, *totals],
        columns=[Column("layer"), Column("sum", 2, bar=True, signed=True), *parts],
    )  # fmt: skip


def _attributed_tokens_as_text(tokens: Sequence[Token]) -> TokenText:
    text = [token.text for token in tokens]
    return TokenText(text, direction("".join(text)))
