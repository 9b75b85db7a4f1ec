"""Say and show what contributes to an outcome: components, source tokens, heads and layers."""

import re
from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from regard.capture.score_path import Side
from regard.display.panels import Bars, Behind, Cell, Column, Heat, Panel, Strip, Table, TokenText, decimals
from regard.display.sentences import Template, sentences
from regard.explain.wording import number, quoted, signed
from regard.text.quoting import direction
from regard.text.tokens import Token

if TYPE_CHECKING:
    from regard.questions.attribution.direct import Attribution
    from regard.questions.attribution.gradients import HeadAttribution, TokenAttribution

Row = tuple[Side | None, bool, int]
Heads = dict[Row, dict[int, list[float]]]
CHOOSE = "Choose a head to see its source tokens."
COMPONENTS = "Components"  # the tab of what is listed by its parts
COLOURS = "Red increases the outcome, blue reduces it."
MIN_PART_OF_LARGEST = 0.05  # of the largest contribution: sentences name no smaller one

TABLE: list[list[Template]] = [
    [("The scores sum to {sum} instead of {due}, so don't trust single scores. Try more steps.", None)],
    [
        ("The largest contribution to the {outcome} ({value}) is {most_adds}, from {most}.", None),
        ("The largest reduction of the {outcome} ({value}) is {least_adds}, from {least}.", None),
        ("Every contribution to the {outcome} ({value}) is 0.", None),
    ],
    [("Among heads, {heads}.", None), ("The largest reduction is {least_adds}, from {least}.", lambda n: "most" in n)],
    [("Summed over heads, {tokens}.", None)],
    [("In {top_head}, attention to {source} contributes most: {source_adds}.", None)],
    [("If the baseline embedding replaces every token, the outcome is {baseline}.", None)],
]


def parts_sentences(result: "Attribution") -> list[str]:
    """Say which component, head and source token contribute most."""
    parts, sources = result.by(), result.by("source", words=result.unit == "word")
    numbers = _ends(parts) | {"outcome": result.outcome, "value": plain(result.value)}
    if "head " not in numbers.get("most", ""):
        numbers["heads"] = _ends([part for part in parts if "head " in part[0]])["clauses"]
    tokens = [(f"attention to {source_token(name)}", value) for name, value in sources if "attention from " in name]
    return sentences(TABLE, numbers | {"tokens": _ends(tokens)["clauses"]})


def tokens_sentences(result: "TokenAttribution") -> list[str]:
    """Say which token or word contributes most, after a warning if the scores miss their sum."""
    numbers = _ends(result.by(result.unit)) | {"outcome": result.outcome_name, "value": plain(result.outcome)}
    if result.baseline is not None:
        numbers["baseline"] = plain(result.baseline, result.outcome)
        if result.misses_its_sum:
            numbers |= {"sum": plain(float(result.scores.sum())), "due": plain(result.outcome - result.baseline)}
    return sentences(TABLE, numbers)


def heads_sentences(result: "HeadAttribution") -> list[str]:
    """Say which head contributes most, and from which token it takes most."""
    numbers = _ends(result.by()) | {"outcome": result.outcome_name, "value": plain(result.outcome)}
    call, head, _ = max(result.best(sum(map(len, result.scores))), key=lambda best: best[2])
    if "most" in numbers:
        row = result.calls.index(call)
        values, tokens = result.sources[row][head].tolist(), result.tokens[row]
        top = values.index(max(values))
        numbers |= {"top_head": numbers["most"], "source": f"{quoted(tokens[top].text)} ({top})"}
        numbers["source_adds"] = signed(values[top], f".{decimals(values)}f")
    return sentences(TABLE, numbers)


def source_token(name: str) -> str:
    """Return the source token in a component's name, with its stack: “run” (2) of the encoder."""
    token = name.partition("attention from ")[2]
    return token.replace(" of the decoder", " of the encoder") if name.startswith("cross-") else token


def plain(value: float, *others: float) -> str:
    """Write an outcome, which is no fraction, with two decimals, or more if it and the others are small."""
    return number(value, f".{decimals([value, *others])}f")


def _ends(parts: list[tuple[str, float]]) -> dict[str, Any]:
    """Return the largest contribution and reduction, unless they are small. parts: largest absolute first."""
    numbers: dict[str, Any] = {}
    clauses, form = [], f".{decimals(value for _, value in parts)}f"
    for key, sign, verb in (("most", 1, "contributes most"), ("least", -1, "reduces the outcome most")):
        name, value = next((part for part in parts if part[1] * sign > 0), ("", 0.0))
        if name and abs(value) >= MIN_PART_OF_LARGEST * abs(parts[0][1]):
            name = re.sub(r"layer (\d+), (feed-forward|biases)", r"the \2 of layer \1", name)
            name = re.sub(r"(^\w+ embedding|^biases )", r"the \1", name).replace("forward of", "forward block of")
            numbers |= {key: name, f"{key}_adds": signed(value, form)}
            clauses.append(f"{name} {verb} ({signed(value, form)})")
    return numbers | {"clauses": " and ".join(clauses) or None}


def parts_panels(result: "Attribution") -> list[Panel]:
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


def tokens_panels(result: "TokenAttribution") -> list[Panel]:
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


def heads_panels(result: "HeadAttribution") -> list[Panel]:
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
