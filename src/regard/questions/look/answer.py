"""Find where on a picture a model looks, and tell it.

With w the weights (H, L, L) of a layer, one head of it or the mean of all:

    heat[p]     = w[q, p] of the query q = [CLS], or the mean over all patches q where the model has no [CLS]; in a text
                  with a picture q is its last token, what the model goes on from, or the last of a word
    received[p] = mean over all queries of w[q, p], mean of heads

Patches that receive ten times the median of all in that layer are told apart: they take weight whatever they show,
as registers do (Darcet et al. 2024, "Vision Transformers Need Registers").
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from regard.checks import from_zero
from regard.display.answer import Read, TracesAnswer
from regard.display.panels import Cell, Column, Heat, Panel, Table, numbered
from regard.errors import RegardError
from regard.explain.frames import Row
from regard.explain.wording import listed, named, number
from regard.images.patches import Box, Patches
from regard.images.removal import Fill
from regard.questions.look.removal import Removal, removal
from regard.text.quoting import quoted
from regard.text.words import only_word
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

APART = 10  # times the median of all patches, from which on one is told apart
TENTH = 0.1  # of the patches, whose part of the heat is told
NAMED = 5  # patches that a sentence names
PALE = 4  # times the mean of all patches, at which colours end at least: an almost even heat is pale, not dark all over


@dataclass(frozen=True)
class Look:
    """Where on one picture a model looks.

    query: the number of the token that looks, None for the mean over all patches; who: its name. layer, head: whose
    weights, head None for the mean of all heads. heat: [row][column]; special: what the same query gives tokens that
    are no patches. received: of each patch, in times the median. boxes: of each patch, on the picture's pixels; None
    where that is not known. answer: of a text, what it most likely goes on with, and how likely; None without logits.
    removal: what removing its regions does, None where that was not asked.
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
    def apart(self) -> list[int]:
        """List the patches that receive far more than the others, the largest first, counted row by row from 0."""
        received = self.received.flatten()
        return [n for n in received.argsort(descending=True, stable=True).tolist() if float(received[n]) >= APART]

    @property
    def order(self) -> list[int]:
        """List the patches, the largest heat first, those apart left out."""
        apart, heat = set(self.apart), self.heat.flatten()
        return [n for n in heat.argsort(descending=True, stable=True).tolist() if n not in apart]

    @property
    def darkest(self) -> float:
        """Return the weight at which colours end: the largest of a patch, but at least `PALE` times the mean."""
        own = self.heat.flatten()[self.order]
        return max(float(own.max()), PALE * float(own.mean())) if len(own) else 0.0

    @property
    def almost_even(self) -> str:
        """Say that no patch gets twice the mean, where none does; those apart are left out."""
        own = self.heat.flatten()[self.order]
        times = float(own.max() / own.mean()) if bool(own.any()) else math.inf
        return f"Almost even: at most {number(times)} times the mean." if times < 2 else ""

    def called(self, patch: int) -> str:
        """Name a patch by its row and column."""
        row, column = divmod(patch, self.heat.shape[1])
        return f"{row},{column}"


@dataclass(frozen=True, eq=False, repr=False)
class Looked(TracesAnswer):
    """Where on each picture the model looks: `looks`, one a picture."""

    format: ClassVar[str] = "regard look"

    looks: Sequence[Look]

    def title(self) -> str:
        """Say of which pictures."""
        more = len(self.looks) - 1
        return f"Where it looks in {self.looks[0].name}" + (f" (and {more} more)" if more else "")

    def findings(self) -> list[str]:
        """Say of each picture where it looks most, and which patches take weight whatever they show."""
        return [sentence for look in self.looks for sentence in self._told(look)]

    def _told(self, look: Look) -> list[str]:
        count, heat, order = look.heat.numel(), look.heat.flatten(), look.order
        who = f"{look.who} {'look' if look.query is None else 'looks'}"
        of = f"mean of its {look.heads} heads" if look.head is None else f"head {look.head}"
        told = []
        if look.answer is not None:
            word, likely = look.answer
            told.append(f"{look.name}: the next word is most likely {quoted(word)} (probability {number(likely)}).")
        if look.removal is not None:
            told.append(look.removal.finding(look.who))
        if not bool(heat.any()):
            return [*told, f"{look.name}: in layer {look.layer} ({of}) {look.who} gives no patch any weight."]
        if order:
            best, apart = order[0], ", those told apart left out" if look.apart else ""
            times = f", {number(float(heat[best] / heat.mean()))} times the mean of all patches"
            where = f"{look.name}: in layer {look.layer} ({of}) {who} most at patch {look.called(best)}"
            told.append(f"{where}{self._where(look, best)}{apart}: {number(float(heat[best]))} of the weight{times}.")
            few, given = order[: max(1, round(TENTH * count))], float(heat[order].sum())
            if given > 0 and len(few) < len(order):
                share = float(heat[few].sum()) / given
                others = f"; tokens that are no patches get {number(look.special)}" if look.special > 0 else ""
                most = f"The {len(few)} of {len(order)} patches that it looks at most"
                told.append(f"{most} have {share:.0%} of what it gives them{others}.")
        if look.apart:
            named = [f"{look.called(n)} ({float(look.received.flatten()[n]):.0f} times)" for n in look.apart[:NAMED]]
            more = len(look.apart) - NAMED
            names = listed(named) if more <= 0 else f"{', '.join(named)} and {more} more"
            told.append(f"Told apart, for they get {APART} times the median of all patches or more: {names}.")
        return told

    @staticmethod
    def _where(look: Look, patch: int) -> str:
        if look.boxes is None:
            return ""
        left, top, right, bottom = (round(each) for each in look.boxes[patch])
        return f" (pixels {left} to {right} across, {top} to {bottom} down)"

    def exactness(self) -> list[str]:
        """Say what heat does not say."""
        more = " What stands in a region's place shows something too: try another filling."
        removed = any(look.removal for look in self.looks)
        told = "Weights say where a token looks, not what the model makes of it"
        return [f"{told}.{more}" if removed else f"{told}: a region taken away says that (--remove)."]

    def rows(self) -> list[Row]:
        """List one row a patch: where it lies, what it gets of the query, and of all tokens in times the median."""
        rows: list[Row] = []
        for look in self.looks:
            wide, received, apart = look.heat.shape[1], look.received.flatten(), set(look.apart)
            for n, weight in enumerate(look.heat.flatten()):
                box = look.boxes[n] if look.boxes is not None else (None, None, None, None)
                rows.append({
                    "picture": look.name, "layer": look.layer, "head": look.head, "row": n // wide, "column": n % wide,
                    "weight": float(weight), "received": float(received[n]), "apart": n in apart,
                    **dict(zip(("left", "top", "right", "bottom"), box, strict=True)),
                })  # fmt: skip
        return rows

    def panels(self) -> list[Panel]:
        """Show the patches that are looked at most, and each picture's heat as its patches lie."""
        shown: list[Panel] = []
        for n, look in enumerate(self.looks, 1):
            which, (high, wide), heat = f" {n}" if len(self.looks) > 1 else "", look.heat.shape, look.heat.flatten()
            columns = [Column("patch"), Column("weight", 2, bar=True), Column("times mean", 1), Column("across"),
                       Column("down")]  # fmt: skip
            mean, rows = float(heat.mean()) or 1.0, list[list[Cell]]()
            for p in look.order:
                box = [round(each) for each in look.boxes[p]] if look.boxes is not None else None
                places = ["", ""] if box is None else [f"{box[0]}–{box[2]}", f"{box[1]}–{box[3]}"]
                rows.append([look.called(p), float(heat[p]), float(heat[p]) / mean, *places])
            table = Table(
                name=f"Patches{which}", title=f"Looked at most in {look.name}", columns=columns, rows=rows, screen=True,
                note="Patches are named by row and column, counted from 0 at the top left; across and down: pixels of "
                "the picture. Times mean: the weight by the mean of all patches.",
            )  # fmt: skip
            grid = Heat(
                name=f"Heat{which}", title=f"What each patch of {look.name} gets", axes=("row", "column"),
                unit="weight", rows=numbered(high), columns=numbered(wide),
                values=look.heat.tolist(), grey=[divmod(p, wide) for p in look.apart], picture=True,
                largest=look.darkest or None,
                note=" ".join(filter(None, [
                    "As the patches lie on the picture.", "Grey: told apart." * bool(look.apart), look.almost_even])),
            )  # fmt: skip
            shown += [table, grid]
            if look.removal is not None:
                size = look.removal.after.shape
                shown.append(Heat(
                    name=f"Removal{which}", title=f"What removing each region of {look.name} takes",
                    axes=("row", "column"), unit=look.removal.unit, rows=numbered(size[0]),
                    columns=numbered(size[1]), values=look.removal.changes.tolist(), signed=True,
                    screen=True, note=f"As the regions lie on the picture; instead stands: {look.removal.fill}.",
                ))  # fmt: skip
        return shown

    def opening(self) -> dict[str, str | int | None]:
        """Open at the first picture's query, in its layer and head."""
        look, token = self.looks[0], self.looks[0].query
        if token is None:  # the patches together: the page shows one's row, that which they look at most
            token = self.traces[0].patches.first + (look.order or look.apart)[0]
        return {"layer": look.layer, "head": look.head, "token": token, "title": self.title()}

    def painted(self) -> "tuple[Figure, list[str]]":
        """Draw each picture as it is, and beside it grey, under its heat."""
        from regard.questions.look.picture import paint_looks

        pictures = [trace.patches for trace in self.traces]
        if any(each is None or each.seen is None for each in pictures):
            return super().painted()
        return paint_looks(self.looks, pictures), []


def looked(
    traces: Sequence[Trace],
    layer: int | None = None,
    head: int | None = None,
    word: str | None = None,
    *,
    remove: tuple[Any, Fill] | None = None,
) -> Looked:
    """Find where on each picture the model looks: of a layer (None: the last) one head, or the mean of all (None).

    word: in a text with a picture, which word looks; None for the last token. remove: the model of the traces, and what
    stands where each region of a picture is removed in turn; None for not removing any.
    """
    looks = [_look(trace, layer, head, word) for trace in traces]
    if remove is not None:
        pairs = zip(looks, traces, strict=True)
        looks = [replace(k, removal=removal(remove[0], trace, k.heat, k.query, remove[1])) for k, trace in pairs]
    if not looks:
        raise RegardError("look: given no trace, needs at least one of a picture")
    about = Read.of(*traces)
    named = tuple((look.name, None) for look in looks)
    return Looked(looks, traces=traces, names=[look.name for look in looks], about=replace(about, texts=named))


def _look(trace: Any, layer: int | None, head: int | None, word: str | None) -> Look:
    patches = getattr(trace, "patches", None)
    if not isinstance(trace, Trace) or patches is None:
        raise RegardError("look: needs the trace of a picture, whose patches are known: model.trace(images=…)")
    held = kept_numbers(trace.attention)
    layer = held[-1] if layer is None else from_zero("layer", layer, len(trace.attention), f"{trace.status.model} has")
    weights = trace.attention[layer].dense().double().cpu()  # (H, L, L)
    head = None if head is None else from_zero("head", head, len(weights), f"layer {layer} has")
    chosen = weights.mean(0) if head is None else weights[head]
    query, who = _who_looks(trace, patches, word)
    row = chosen[query] if query is not None else chosen[patches.first :].mean(0)
    received = patches.heat(weights.mean(0).mean(0))
    median = float(received.median())
    heat = patches.heat(row)
    ours = range(patches.first, patches.first + heat.numel())
    boxes = None if patches.seen is None else [patches.box(n) for n in ours]
    return Look(
        patches.picture.name, query, who, layer, head, len(weights), heat, float(row.sum() - heat.sum()),
        received / median if median > 0 else torch.zeros_like(received), boxes, _answer(trace),
    )  # fmt: skip


def _answer(trace: Trace) -> tuple[str, float] | None:
    """What a text most likely goes on with, and how likely that is."""
    if not trace.text or trace.logits is None or trace.names is None:
        return None
    likely, token = trace.logits[-1].float().softmax(-1).max(-1)
    return trace.names(int(token)), float(likely)


def _who_looks(trace: Trace, patches: Patches, word: str | None) -> tuple[int | None, str]:
    """The number of the token that looks, None for all patches together, and its name."""
    if not trace.text:
        query = next((n for n, token in enumerate(trace.tokens[: patches.first]) if token.text == "[CLS]"), None)
        return query, "the patches together" if query is None else "[CLS]"
    query = len(trace.tokens) - 1 if word is None else only_word(trace.text, trace.tokens, word).tokens[-1]
    return query, named(trace.tokens, query)
