"""Collect a page's data for the browser: the texts of traces, their attention calls, findings and panels.

`web/src/data/format.ts` describes each field. Arrays are stored separately, in a `NumberStore`.
web/src/views/overview has one module for each kind of first view.
"""

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import torch

from regard.explain.logits import LensLayer
from regard.explain.texts.highlights import MAX_WEIGHTS, Link, standing_out
from regard.explain.texts.summary import Summary
from regard.explain.weights.specific_weights import (
    DivergenceMap,
    divergence_maps,
    expected_weight,
    largest_divergences,
)
from regard.explain.wording import ROUNDING
from regard.images import Box, Patches
from regard.models.windows import WindowedTrace
from regard.text.quoting import direction, quoted, text_with_control_pictures, visible
from regard.text.tokens import Token
from regard.text.words import words
from regard.trace.labelled_map import attention_from
from regard.trace.status import Status, exactness, note_sentences
from regard.trace.trace import Trace
from regard.version import __version__
from regard.web.numbers import Data, NumberStore

T = TypeVar("T")
FORMAT, VERSION = "regard page", 1
SCREEN = 900  # pixels of an image's longer side
LONGEST = 48  # maximum tokens of a text whose links the first view shows
MOST_CELLS = 1000  # maximum tokens times states for which a page has the three likeliest tokens of each


@dataclass(repr=False)
class Page:
    """A page that is being built. `data()` returns the type Page of format.ts.

    layers, heads: the layer and head numbers that it includes, None for all. steps_of: the layers whose steps it has.
    values_alone: steps have only values. steps_size: their size in bytes, as base64. optional: a sentence on that size.
    tokens: the total number of tokens.
    """

    title: str
    findings: Sequence[str] = ()
    status: list[str] = field(default_factory=list)
    model: str | None = None
    layers: tuple[int, ...] | None = None
    heads: tuple[int, ...] | None = None
    steps_of: tuple[int, ...] | None = ()
    values_alone: bool = False
    steps_size: int = 0
    optional: str = ""
    tokens: int = 0
    numbers: NumberStore = field(default_factory=NumberStore)
    opening: Data = field(default_factory=lambda: {"view": "tokens", "call": 0, "head": None, "token": None})
    texts: list[Data] = field(default_factory=list)
    calls: list[Data] = field(default_factory=list)
    scores: list[Data] = field(default_factory=list)
    panels: list[Data] = field(default_factory=list)
    alignment: list[Data] = field(default_factory=list)
    steps: list[Data] = field(default_factory=list)
    comparisons: list[Data] = field(default_factory=list)
    overview: Data | None = None

    def __repr__(self) -> str:
        return f"Page({self.title!r})"

    def page(self, choice: Any = None) -> "Page":
        """Return the page itself, so that `regard.show` takes it like an answer. choice: ignored."""
        return self

    def data(self) -> Data:
        """Return the page's data, with symbols for control characters, so that no text can reorder the display."""
        first = {"view": "overview"} if self.overview and self.opening["view"] == "tokens" else {}
        data: Data = {
            "format": FORMAT, "version": VERSION, "made_by": f"regard {__version__}",
            "title": " ".join(self.title.split()), "model": self.model, "findings": list(self.findings),
            "status": self.status, "opening": self.opening | first,
            "texts": self.texts, "calls": self.calls, "heads": self.scores,
            "panels": self.panels, "alignment": self.alignment, "steps": self.steps,
            "comparisons": self.comparisons, "overview": self.overview,
        }  # fmt: skip
        return {name: page_data_with_pictures(value) for name, value in data.items()}

    def add_text(self, text: Data) -> int:
        """Add the data of a text to the page. Returns the text's index."""
        self.texts.append(text)
        return len(self.texts) - 1

    def add_call(self, call: Data) -> int:
        """Add the data of an attention call to the page. Returns the call's index."""
        self.calls.append(call)
        return len(self.calls) - 1

    def largest_difference(self) -> float:
        """Return the largest difference between weights of the page and of the traces, over all calls."""
        return max((float(str(call["difference"])) for call in self.calls), default=0.0)

    def overview_of(
        self, traces: Sequence[Any], summary: Summary | None = None, *, chosen: bool = False
    ) -> Data | None:
        """Return the data of the first view, in addition to queries and keys, or None if these traces have no view.

        chosen: whether the page opens at a requested layer or head.
        """
        traces = [side for trace in traces for side in (trace.windows if isinstance(trace, WindowedTrace) else [trace])]
        if self.alignment:
            return {"kind": "pair"}
        if not all(isinstance(trace, Trace) for trace in traces):
            return None
        if any(trace.patches is not None for trace in traces):
            return {"kind": "image"} if len(traces) == 1 else None
        return self.texts_stage([(trace.tokens, trace.attention) for trace in traces], summary, chosen=chosen)

    def texts_stage(
        self, texts: Sequence[tuple[Sequence[Token], Any]], summary: Summary | None = None, *, chosen: bool = False
    ) -> Data | None:
        """Return the first view's data for short texts: the most distinctive links, and the tokens of a followed word.

        It also has each token's most distinctive link in every head (`unusual_by_head`).
        """
        links: list[Any] = []  # None for a long text
        unusual: list[Any] = []
        queries: dict[str, int] = {}  # the token shown of each followed word, by the occurrence's label
        shapes: set[Any] = set()
        for number, (tokens, attention) in enumerate(texts):
            calls, heads = self._calls_and_heads_of_text(number)
            if not (tokens and calls):
                return None
            shapes.add((*(token.id for token in tokens), len(calls), len(heads)))
            if len(tokens) > LONGEST:
                links.append(None)
                unusual.append(None)
                continue
            named: Any = summary.highlights[number].links if summary and summary.highlights else []
            maps = [*divergence_maps(tokens, attention, self._sink_tokens(number), [*calls], heads)]
            occurrences = summary.occurrences if summary and not summary.windows else []
            followed = [(word, word.link) for word in occurrences if word.link and word.text == number]
            for word, link in sorted(followed, key=lambda pair: pair[1].weight):
                at, numbers = word.tokens[0], [link.weight, link.expected, 0.0]
                if len(word.tokens) > 1 and link.layer in calls:  # those of `link` are means over the word's tokens
                    _, weights, divergence = maps[[*calls].index(link.layer)]
                    at = word.tokens[int(divergence[link.head, word.tokens, link.token].argmax())]
                    weight, beyond = (float(values[link.head, at, link.token]) for values in (weights, divergence))
                    numbers = [weight, expected_weight(weight, beyond), beyond]
                queries[word.label] = at
                named = [Link(link.layer, link.head, at, word.word, link.token, link.text, *numbers), *named]
            links.append([
                [q, k, calls[layer], heads.index(h), round(weight, 4), round(expected, 6)]
                for q, k, layer, h, weight, expected in standing_out(named, maps) if layer in calls and h in heads
            ])  # fmt: skip
            for word, _ in followed:  # the shown token gets the mean of all, as in the sentence
                for *_, divergence in maps:
                    divergence[:, queries[word.label]] = attention_from(divergence, word.tokens)
            unusual.append(self.numbers.add(unusual_by_head(maps, heads)))
        occurrences, difference = (summary.occurrences, summary.difference) if summary else ([], None)
        rows = [] if summary is None or summary.windows else [occurrence.text for occurrence in occurrences]
        words = []
        if set(rows) == {*range(len(texts))}:
            words = [queries.get(word.label, word.tokens[0]) for word in occurrences]
        if not words and len(texts) == 2 and len(shapes) == 1:  # a text without and with an intervention
            words, rows = [int(str(self.opening["token"] or 0))] * 2, [0, 1]
        if not words or None in links:
            words, rows = [], []
        return {
            "kind": "texts", "chosen": chosen, "links": links, "unusual": unusual, "tokens": words, "rows": rows,
            "difference": None if difference is None else {
                "words": list(difference.words),
                **{name: [None if value is None else round(value, 6) for value in getattr(difference, name)]
                   for name in ("low", "high")},
            },
        }  # fmt: skip

    def writing_stage(self, written: Sequence[Any], traces: Sequence[Trace]) -> Data | None:
        """Return the first view's data for generated texts, token by token. None if the page lacks their attention.

        written: `tokens` and `how` of each text, as in a `Generation`. Each token has its probability, other likely
        tokens and its most distinctive links. For each hidden state, there are the token's rank and probability, and
        the three likeliest tokens (or one, if there are many states) as indices into `words`.
        """
        names: dict[str, int] = {}
        count = 3 if sum(len(step.layers) for text in written for step in text.how.tokens) <= MOST_CELLS else 1

        def cell(layer: LensLayer) -> list[int | float]:
            parts = [layer.rank, hundredths(layer.probability)]
            for guess in layer.candidates[:count]:
                parts += names.setdefault(guess.text, len(names)), hundredths(guess.probability)
            return parts

        texts = []
        for number, (text, trace) in enumerate(zip(written, traces, strict=True)):
            calls, heads = self._calls_and_heads_of_text(number)
            if not (text.how.tokens and calls):
                return None
            unusual = None
            if len(calls) * len(heads) * len(trace.tokens) ** 2 <= MAX_WEIGHTS:
                maps = [*divergence_maps(trace.tokens, trace.attention, self._sink_tokens(number), [*calls], heads)]
                unusual = self.numbers.add(unusual_by_head(maps, heads)[:1, ..., text.how.given - 1 :])
            else:
                name = self.texts[number]["name"]
                self.status.append(f"Links that stand out are not sought in {name}: it is too long.")
            steps = [
                {
                    "probability": step.probability,
                    "links": [
                        [link.key, calls[link.layer], heads.index(link.head), round(link.weight, 4)]
                        for link in step.links if link.layer in calls and link.head in heads
                    ],
                    "others": [(other.text, other.probability) for other in step.others],
                    "lens": [cell(layer) for layer in step.layers],
                }
                for step in text.how.tokens
            ]  # fmt: skip
            texts.append({"text": number, "first": text.how.given, "steps": steps, "unusual": unusual})
        return {"kind": "writing", "texts": texts, "words": list(names)}

    def _sink_tokens(self, number: int) -> list[int]:
        """Return the positions of a text's attention sinks."""
        return cast("Any", self.texts[number]["tokens"])["sinks"]

    def _calls_and_heads_of_text(self, number: int) -> tuple[dict[Any, int], list[int]]:
        """Return a text's self-attention calls by layer, and its heads. Empty if layers differ in calls or heads."""
        calls: list[tuple[int, Any]] = [(at, call) for at, call in enumerate(self.calls) if call["queries"] == number]
        by_layer, heads = {call["layer"]: at for at, call in calls}, {call["heads"] for _, call in calls}
        if len(heads) != 1 or len(by_layer) < len(calls) or any(call["keys"] != number for _, call in calls):
            return {}, []
        return by_layer, calls[0][1]["head_numbers"] or [*range(*heads)]


def unusual_by_head(maps: Sequence[DivergenceMap], heads: Sequence[int]) -> np.ndarray:
    """Return each token's most distinctive link in every head: its divergence in 0.001 nats, and the other token.

    heads: those that the page has. Returns uint16 (2, 2, n, H, L). Axis 0: as query or key. Axis 1: these two numbers.
    """
    largest, others = largest_divergences([divergence[list(heads)] for _, _, divergence in maps])
    values = torch.stack([(largest * 1000).round().clamp(max=65_535), others], -2)
    return values.permute(2, 3, 0, 1, 4).numpy().astype("uint16")


def text_data(
    name: str, text: str, tokens: Sequence[Token], sinks: Iterable[int] = (), patches: Patches | None = None
) -> Data:
    """Return the page's data for a text. name: such as "text 1" or "source". sinks: positions of attention sinks.

    patches: the patches of an image, if their boxes are known.
    """
    text_words = [word for word in words(tokens) if not tokens[word[0]].special] if patches is None else []
    picture: Data = {} if patches is None or patches.seen is None else {"picture": picture_data(patches, patches.seen)}
    numbers = {n: number for number, word in enumerate(text_words) for n in word}
    turns = [token.turn for token in tokens]
    data: Data = {
        "name": name,
        "text": text,
        "direction": direction(text),
        "tokens": {
            "text": [token.text for token in tokens],
            "start": [token.start for token in tokens],
            # A blank that a tokenizer adds before a text isn't the text's first character.
            "end": [t.start if t.text.isspace() and t.characters.strip() else t.end for t in tokens],
            "special": [n for n, token in enumerate(tokens) if token.special],
            "sinks": sorted(sinks),
            "word": [numbers.get(n) for n in range(len(tokens))],
            **({"turn": turns} if any(turns) else {}),
        },
    }
    return data | picture


def picture_data(patches: Patches, seen: Box) -> Data:
    """Return the page's data for an image: a small JPEG, and the box of all patches in fractions of its sides."""
    pixels = patches.picture.pixels
    width, height = pixels.size
    small = pixels.copy()
    small.thumbnail((SCREEN, SCREEN))
    file = BytesIO()
    small.save(file, "JPEG", quality=85)
    return {
        "src": f"data:image/jpeg;base64,{b64encode(file.getvalue()).decode()}", "size": [width, height],
        "rows": patches.rows, "columns": patches.columns, "first": patches.first,
        "seen": [round(edge / side, 5) for edge, side in zip(seen, (width, height, width, height), strict=True)],
    }  # fmt: skip


@runtime_checkable
class HasPage(Protocol):
    """An object that builds its own page, such as an answer."""

    def page(self, choice: Any = None) -> Page:
        """Build the page."""


def page_data_with_pictures(value: T) -> T:
    """Copy a page's data, with symbols for control characters in all strings."""
    changed: Any = value
    if isinstance(value, str):
        changed = text_with_control_pictures(value)
    elif isinstance(value, dict):
        changed = {name: page_data_with_pictures(item) for name, item in value.items()}
    elif isinstance(value, list | tuple):
        changed = [page_data_with_pictures(item) for item in value]
    return changed


def model_name(statuses: Sequence[Status]) -> str | None:
    """Return the names of all models, joined with "and", or None without models."""
    return " and ".join(dict.fromkeys(status.model for status in statuses)) or None


def status_lines(statuses: Sequence[Status], page: Page) -> list[str]:
    """Return sentences on how the traces were computed, how exact the page is, and what it leaves out."""
    lines = []
    for model in dict.fromkeys(status.model for status in statuses):
        of_model = [status for status in statuses if status.model == model]
        kernels = ", ".join(dict.fromkeys(kernel for status in of_model for kernel in status.kernels))
        by = f", attention by {kernels}" if kernels else ""
        lines.append(f"Computed with {model} ({of_model[0].dtype}, {of_model[0].device}){by}.")
        lines.append(exactness(of_model))
    if page.calls:
        lines.append(
            "This page computes weights from queries and keys stored as int16 with a scale per vector. They differ "
            f"from the trace by at most {page.largest_difference():.1e}."
        )
    for kind, numbers in (("layers", page.layers), ("heads", page.heads)):
        if numbers is not None:
            renumbered = ", renumbered from 0" if kind == "heads" else ""
            lines.append(f"This page has only {kind} {', '.join(map(str, numbers))}{renumbered}.")
    for name, parts in (("Unknown to", "unknown"), ("Dropped by", "dropped")):
        pieces = [part for status in statuses for part in getattr(status, parts)]
        if pieces:
            named = ", ".join(quoted(visible(part)) for part in pieces[:6])
            lines.append(f"{name} the tokenizer: {named}.")
    return lines + note_sentences(statuses)


def hundredths(chance: float) -> float:
    """Round a probability to two decimals, but to 0.001 or 0.999 if it would wrongly become 0 or 1."""
    shown = round(chance, 2)
    return (shown or 0.001 * (chance > 0)) if shown < 1 or chance >= 1 - ROUNDING else 0.999
