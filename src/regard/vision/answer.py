"""Find which patches of an image a model attends to.

With w (L, L) the weights of a single head of a layer, or the mean of all its heads:

    heat[p]     = w[q, p] for the query q = [CLS], or the mean over all patches q if the model has no [CLS]; in a text
                  with an image, q is the last token, or the last token of a word
    received[p] = mean of w[q, p] over all queries and heads

Sink patches receive at least ten times as much as the layer's median patch. They attract attention whatever they show,
like registers (Darcet et al. 2024, "Vision Transformers Need Registers").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cosine_similarity

from regard.checks import from_zero
from regard.display.answer import Read, TracesAnswer
from regard.display.panels import Cell, Column, Heat, Panel, Table, numbered
from regard.display.sentences import MAX_SENTENCES, Numbers, Template, sentences
from regard.errors import RegardError
from regard.explain.causes.ablation_effect import spearman
from regard.explain.wording import fixed, listed, named
from regard.images import Box, Fill
from regard.models.model import Model
from regard.shown import Row
from regard.text.quoting import quoted
from regard.text.words import only_word
from regard.trace.layers import kept_numbers
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_REGIONS = 4  # maximum number of regions per row and per column


@dataclass(frozen=True)
class Removal:
    """The effect of removing each region, [row][column], on an outcome: a log probability in nats, or a cosine.

    before: the outcome for the whole image. after: the outcome without each region. heat: each region's fraction of the
    attention to all patches. patches: the numbers of rows and columns of patches.
    """

    fill: Fill
    unit: str
    before: float
    after: Float[Tensor, "rows columns"]
    heat: Float[Tensor, "rows columns"]
    patches: tuple[int, int]

    @property
    def changes(self) -> Float[Tensor, "rows columns"]:
        """The decrease of the outcome without each image region."""
        return self.before - self.after

    def numbers(self, name: str, token: str) -> dict[str, Any]:
        """Collect the values for sentences. name: the attending token's name. token: the most likely token."""
        changes, heat, nats = self.changes.flatten(), self.heat.flatten(), self.unit == "nats"
        outcomes = torch.cat([torch.tensor([self.before]), self.after.flatten()])
        before, *after = (outcomes.exp() if nats else outcomes).tolist()
        best = int(changes.argmax())
        numbers = {
            "outcome": f"the probability of {token}" if nats else f"the cosine of {name} with its original vector",
            "region": self._region(best), "falls": float(changes[best]) > 0, "before": before, "without": after[best],
            "mean": (sum(after) - after[best]) / max(1, len(after) - 1),
        }  # fmt: skip
        if bool(heat.any()):
            agreement = spearman(changes.tolist(), heat.tolist())
            numbers |= {"heaviest": self._region(int(heat.argmax())), "agreement": agreement}
        return numbers

    def _region(self, region: int) -> str:
        spans = zip(divmod(region, self.after.shape[1]), map(_region_edges, self.patches), strict=True)
        (top, bottom), (left, right) = [(cuts[n], cuts[n + 1] - 1) for n, cuts in spans]
        return f"patch {top},{left}" if (top, left) == (bottom, right) else f"patches {top},{left}–{bottom},{right}"


def removal(model: Model, trace: Trace, heat: Float[Tensor, "rows columns"], query: int | None, fill: Fill) -> Removal:
    """Run a trace's image again without each of its regions (at most 4 × 4 of similar size), and measure the change.

    The outcome is the log probability of the most likely next token. Without a text, it is the cosine of [CLS], or of
    the mean of all patches, with its original vector. The control is the mean over the other regions.

    query: the token to compare if there is no text, None for the mean of all patches.
    """
    first, has_text = getattr(trace.patches, "first", 0), bool(trace.text) and trace.logits is not None

    def state(run: Any) -> Tensor:
        if has_text:
            return run.logits[-1].double().log_softmax(-1)
        last = run.last_hidden_state
        return last[first:].double().mean(0) if query is None else last[query].double()

    def outcome(run: Trace) -> float:
        return float(state(run)[state(trace).argmax()] if has_text else cosine_similarity(state(run), state(trace), 0))

    rows, columns = ([slice(*edges) for edges in pairwise(_region_edges(size))] for size in heat.shape)
    regions, shape = list(product(rows, columns)), (len(rows), len(columns))
    after = torch.tensor([outcome(run) for run in model.without(trace, regions, fill)], dtype=torch.float64)
    parts = torch.stack([heat[region].sum() for region in regions]) / (heat.sum() or 1)
    unit = "nats" if has_text else "1 − cosine"
    return Removal(fill, unit, outcome(trace), after.view(shape), parts.view(shape), (heat.shape[0], heat.shape[1]))


def _region_edges(size: int) -> list[int]:
    parts = min(MAX_REGIONS, size)
    return [n * size // parts for n in range(parts + 1)]


MIN_SINK = 10  # a patch that receives this many times the median weight is a sink
TOP_FRACTION = 0.1  # fraction of patches whose total weight is reported
MAX_NAMED_PATCHES = 3  # maximum number of patches named in a sentence
MIN_SCALE = 4  # lower limit of the colour scale's end, in multiples of the mean, so that almost even heat maps are pale

PEAK: list[Template] = [
    ("{where}{who} attends only to sink patches in {place}.", lambda n: not n["weight"] and n["any"]),
    ("{where}{who} attends to no patch in {place}.", lambda n: not n["weight"]),
    ("{where}{who} attends most to a {kind}patch in the {side} (patch {patch}) in {place}: weight {weight}, "
     "{times:n}× the mean.", None),
]  # fmt: skip
KEPT: list[list[Template]] = [
    [("The most likely next token is {answer} (probability {likely}).", None)],
    PEAK,
    [("Sink patches receive at least {apart} times the median weight: {sinks}.", None),
     ("The {few} patches with the most weight have {fraction:%} of the weight of all {count} patches.", None)],
]  # fmt: skip
REMOVED: list[list[Template]] = [
    [("{where}removing {region} lowers {outcome} most, from {before} to {without} (mean of others: {mean}).",
      lambda n: n["falls"]),
     ("{where}no removed region lowers {outcome} (before {before}, lowest {without} without {region}).", None)],
    [("The region with the most weight is {heaviest} (rank correlation of weight and effect: {agreement}).", None)],
    PEAK,
]  # fmt: skip


@dataclass(frozen=True)
class Look:
    """The attention of a model to an image.

    query: the index of the attending token, None for the mean over all patches. who: its name. head: None for the mean
    of all heads. heat: the query's attention to each patch, [row][column]. special: its attention to all other tokens.
    received: the attention that each patch receives, as a multiple of the median. boxes: each patch's box in the
    image's pixels, None if unknown. answer: the most likely next token of a text with its probability, None without
    logits. removal: the effect of removing regions, None if not requested.
    """

    name: str
    query: int | None
    who: str
    layer: int
    head: int | None
    heads: int
    heat: Float[Tensor, "rows columns"]
    special: float
    received: Float[Tensor, "rows columns"]
    boxes: Sequence[Box] | None
    answer: tuple[str, float] | None = None
    removal: Removal | None = None

    @property
    def sinks(self) -> list[int]:
        """The sink patches, numbered row by row from 0. The patch that receives most attention comes first."""
        received = self.received.flatten()
        return [n for n in received.argsort(descending=True, stable=True).tolist() if float(received[n]) >= MIN_SINK]

    @property
    def order(self) -> list[int]:
        """The patches that aren't sinks, numbered row by row from 0. The patch with the largest heat comes first."""
        sinks, heat = set(self.sinks), self.heat.flatten()
        return [n for n in heat.argsort(descending=True, stable=True).tolist() if n not in sinks]

    @property
    def darkest(self) -> float:
        """The end of the colour scale: the largest weight of a patch, but at least `MIN_SCALE` times the mean."""
        weights = self.heat.flatten()[self.order]
        return max(float(weights.max()), MIN_SCALE * float(weights.mean())) if len(weights) else 0.0

    @property
    def almost_even(self) -> str:
        """A sentence if no patch except sinks has twice the mean weight, otherwise ""."""
        weights = self.heat.flatten()[self.order]
        times = float(weights.max() / weights.mean()) if bool(weights.any()) else math.inf
        return f"Almost even: at most {fixed(times, 2, unbounded=True)} times the mean." if times < 2 else ""

    @property
    def place(self) -> str:
        """The layer and head of the attention to the image, in words."""
        return f"layer {self.layer}, " + (f"mean of {self.heads} heads" if self.head is None else f"head {self.head}")

    def patch_name(self, patch: int) -> str:
        """Return the name of an image patch: its row and column."""
        return ",".join(map(str, divmod(patch, self.heat.shape[1])))

    def side(self, patch: int) -> str:
        """Return which cell of a 3 × 3 grid over the image a patch is in, such as "upper left"."""
        rows, columns = self.heat.shape
        down = ("upper", "", "lower")[3 * (patch // columns) // rows]
        return f"{down} {('left', 'middle', 'right')[3 * (patch % columns) // columns]}".strip()


@dataclass(frozen=True, eq=False, repr=False)
class ImageAttention(TracesAnswer):
    """The model's attention to each image, as one `Look` per image."""

    format: ClassVar[str] = "regard look"

    looks: Sequence[Look]

    def title(self) -> str:
        """Return a title with the first image's name and the number of others."""
        more = len(self.looks) - 1
        return f"Attention to {self.looks[0].name}" + (f" (and {more} more)" if more else "")

    def findings(self) -> list[str]:
        """Report the most attended patch of each image, or the effect of removing its regions."""
        if len(self.looks) == 1:
            table = REMOVED if self.looks[0].removal else KEPT
            return sentences(table, _numbers_of_look(self.looks[0], ""))
        tables = [(REMOVED if look.removal else [PEAK], look) for look in self.looks]
        groups = (sentences(table, _numbers_of_look(look, f"In {look.name}, "), 1) for table, look in tables)
        return [sentence for first in groups for sentence in first][:MAX_SENTENCES]

    def exactness(self) -> list[str]:
        """Return a sentence on how to interpret attention to an image, or the effects of removing regions."""
        if any(look.removal for look in self.looks):
            return ["Effects depend on how a region is filled. Compare blank, mean and blur."]
        return ["Weights don't measure effects. Use --remove to measure what each region changes."]

    def rows(self) -> list[Row]:
        """Return a row per patch: position, attention from the query, and received attention / median."""
        rows: list[Row] = []
        for look in self.looks:
            wide, received, sinks = look.heat.shape[1], look.received.flatten(), set(look.sinks)
            for n, weight in enumerate(look.heat.flatten()):
                box = look.boxes[n] if look.boxes is not None else (None, None, None, None)
                rows.append({
                    "picture": look.name, "layer": look.layer, "head": look.head, "row": n // wide, "column": n % wide,
                    "weight": float(weight), "received": float(received[n]), "apart": n in sinks,
                    **dict(zip(("left", "top", "right", "bottom"), box, strict=True)),
                })  # fmt: skip
        return rows

    def panels(self) -> list[Panel]:
        """Return each image's table of patches by weight, its heat map, and the effects of removing regions."""
        panels: list[Panel] = []
        for n, look in enumerate(self.looks, 1):
            suffix, (high, wide), heat = f" {n}" if len(self.looks) > 1 else "", look.heat.shape, look.heat.flatten()
            title = f"Attention from {look.who} to patches of {look.name}, {look.place}"
            columns = [Column("patch"), Column("weight", 2, bar=True), Column("× mean", 2, unbounded=True),
                       Column("x pixels"), Column("y pixels")]  # fmt: skip
            mean, rows = float(heat[look.order].mean()) or 1.0, list[list[Cell]]()
            for p in look.order:
                box = [round(side) for side in look.boxes[p]] if look.boxes is not None else None
                ranges = ["", ""] if box is None else [f"{box[0]}–{box[2]}", f"{box[1]}–{box[3]}"]
                rows.append([look.patch_name(p), float(heat[p]), float(heat[p]) / mean, *ranges])
            left_out = " Sink patches are left out." * bool(look.sinks)
            table = Table(
                name=f"Patches{suffix}", title=title, columns=columns, rows=rows, screen=True,
                note=f"A patch is named by row and column, counted from 0 at the top left.{left_out}",
            )  # fmt: skip
            sinks = f"Grey: sink patches, which receive at least {MIN_SINK} times the median weight." * bool(look.sinks)
            grid = Heat(
                name=f"Heat{suffix}", title=title, axes=("row", "column"),
                unit="weight", rows=numbered(high), columns=numbered(wide), values=look.heat.tolist(),
                grey=[divmod(p, wide) for p in look.sinks], picture=True, largest=look.darkest or None,
                note=" ".join(filter(None, [sinks, look.almost_even])) or "Each cell is one patch of the image.",
            )  # fmt: skip
            panels += [table, grid]
            if look.removal is not None:
                size, unit = look.removal.after.shape, look.removal.unit
                effect = "fall of log probability, in nats" if unit == "nats" else unit
                panels.append(Heat(
                    name=f"Removal{suffix}", title=f"Effect of removing each region of {look.name} ({effect})",
                    axes=("row", "column"), unit=unit, rows=numbered(size[0]),
                    columns=numbered(size[1]), values=look.removal.changes.tolist(), signed=True,
                    screen=True, note=f"Each cell is a region of the image (fill: {look.removal.fill}).",
                ))  # fmt: skip
        return panels

    def opening(self) -> dict[str, str | int | None]:
        """Return what the page shows first: the first image's query, in its layer and head."""
        look, token = self.looks[0], self.looks[0].query
        if token is None:  # the mean over all patches has no row, so show that of the most attended patch
            token = self.traces[0].patches.first + (look.order or look.sinks)[0]
        return {"layer": look.layer, "head": look.head, "token": token, "title": self.title()}

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw each image, and next to it the image in grey under its heat map."""
        from regard.vision.picture import paint_looks

        pictures = [trace.patches for trace in self.traces]
        if any(picture is None or picture.seen is None for picture in pictures):
            return super().painted()
        return paint_looks(self.looks, pictures), []


def looked(
    traces: Sequence[Trace],
    layer: int | None = None,
    head: int | None = None,
    word: str | None = None,
    *,
    remove: tuple[Any, Fill] | None = None,
) -> ImageAttention:
    """Find where the model looks in each image, in a layer (None: the last) and head (None: the mean of all heads).

    word: the attending word of a text with an image, None for the last token. remove: the traces' model, and the fill
    of removed regions. None: no region is removed.
    """
    looks = [_look_at(trace, layer, head, word) for trace in traces]
    if remove is not None:
        pairs = zip(looks, traces, strict=True)
        looks = [replace(k, removal=removal(remove[0], trace, k.heat, k.query, remove[1])) for k, trace in pairs]
    if not looks:
        raise RegardError("look: got no trace, expected at least one of an image")
    about = Read.of(*traces)
    texts = tuple((look.name, None) for look in looks)
    return ImageAttention(looks, traces=traces, names=[look.name for look in looks], about=replace(about, texts=texts))


def _look_at(trace: Any, layer: int | None, head: int | None, word: str | None) -> Look:
    """Measure the attention to a trace's image."""
    patches = getattr(trace, "patches", None)
    if not isinstance(trace, Trace) or patches is None:
        raise RegardError("look: pass the trace of an image with known patches: model.trace(images=…)")
    known = kept_numbers(trace.attention)
    layer = known[-1] if layer is None else from_zero("layer", layer, len(trace.attention), f"{trace.status.model} has")
    weights = trace.attention[layer].dense().double().cpu()  # (H, L, L)
    head = None if head is None else from_zero("head", head, len(weights), f"layer {layer} has")
    matrix = weights.mean(0) if head is None else weights[head]
    query = next((n for n, token in enumerate(trace.tokens[: patches.first]) if token.text == "[CLS]"), None)
    query_name = "the average patch" if query is None else "[CLS]"
    if trace.text:
        query = len(trace.tokens) - 1 if word is None else only_word(trace.text, trace.tokens, word).tokens[-1]
        query_name = named(trace.tokens, query)
    row = matrix[query] if query is not None else matrix[patches.first :].mean(0)
    received, heat = patches.heat(weights.mean(0).mean(0)), patches.heat(row)
    median, indices = float(received.median()), range(patches.first, patches.first + heat.numel())
    boxes = None if patches.seen is None else [patches.box(n) for n in indices]
    answer = None
    if trace.text and trace.logits is not None and trace.names is not None:  # the most likely next token
        probability, token = trace.logits[-1].float().softmax(-1).max(-1)
        answer = trace.names(int(token)), float(probability)
    return Look(
        patches.picture.name, query, query_name, layer, head, len(weights), heat, float(row.sum() - heat.sum()),
        received / median if median > 0 else torch.zeros_like(received), boxes, answer,
    )  # fmt: skip


def _numbers_of_look(look: Look, phrase: str) -> Numbers:
    """Collect the values for sentences on an image's attention. phrase: the phrase that names the image, or ""."""
    heat, order = look.heat.flatten(), look.order
    numbers: dict[str, Any] = {"where": phrase, "who": look.who, "place": look.place, "apart": MIN_SINK, "sinks": None}
    numbers["kind"] = "non-sink " * bool(look.sinks)
    numbers |= {"any": bool(heat.any()), "weight": 0.0, "count": len(order)}
    if order and (total := float(heat[order].sum())):
        best, top = order[0], order[: max(1, round(TOP_FRACTION * len(heat)))]
        numbers |= {"patch": look.patch_name(best), "side": look.side(best), "weight": float(heat[best])}
        numbers["times"] = numbers["weight"] * len(order) / total
        if 1 < len(top) < len(order):
            numbers |= {"few": len(top), "fraction": float(heat[top].sum()) / total}
    if look.sinks:
        sinks, more = [look.patch_name(n) for n in look.sinks[:MAX_NAMED_PATCHES]], len(look.sinks) - MAX_NAMED_PATCHES
        numbers["sinks"] = listed([*sinks, f"{more} more"] if more > 0 else sinks)
    if look.answer is not None:
        numbers |= {"answer": quoted(look.answer[0]), "likely": look.answer[1]}
    if look.removal is not None:
        numbers |= look.removal.numbers(look.who, numbers.get("answer", "the next token"))
    return numbers
