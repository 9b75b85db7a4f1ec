"""Choose the parts of a summary that the plot of `regard see` shows: sentences with arcs, heads, and a word's movement.

The plot, the notebook's view and the page's first view show this choice.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from string import ascii_lowercase
from typing import Any

from regard.explain.texts.highlights import most_distinctive_link, standing_out
from regard.explain.texts.summary import Occurrence, Summary, curves, furthest_apart, layer_looked_at
from regard.explain.weights.attended import check_heads
from regard.explain.weights.specific_weights import DISTINCTIVE, divergence_maps, specific_weights
from regard.explain.wording import mean_or_head
from regard.questions.see.sentences import ORDINALS, first_link
from regard.text.quoting import display_text, visible
from regard.text.words import spelling
from regard.trace.labelled_map import attention_from
from regard.trace.layers import kept_numbers
from regard.trace.trace import Trace

LONGEST = 160  # maximum tokens drawn per text; in a longer text, only those around the word are drawn
ARCS = 2  # distinctive links drawn per token
CLAUSES = re.compile(r"(?:\([^)]*\)|(?! and |(?<=\)), “)[^(])+(?: and |(?<=\)), (?=“))?| and |, (?=“)")
PARTS = re.compile(r"(\([^)]*\)|“[^”]*”)")
Curve = Sequence[int | float | None]
Arc = tuple[int, int | float, int, int | None]  # key, weight, layer, head


@dataclass(frozen=True)
class TextLine:
    """A text to draw, with the attention from one of its words.

    tokens: the word's tokens. apart: special tokens and sinks. head: (layer, head) of the weights drawn, with head None
    for the mean. None if each arc has a separate head. cells[l][h]: the largest divergence of the word's links in this
    head, scaled so that the maximum is 1 if it is at least 0.25 nats. For a text of more than 160 tokens, the word's
    largest weight on another word. links: all distinctive links, as `standing_out` returns them.
    """

    label: str
    trace: Trace
    tokens: Sequence[int]
    apart: frozenset[int]
    head: tuple[int, int | None] | None
    arcs: Sequence[Arc]
    layers: list[int]
    cells: list[list[int | float]]
    links: list[tuple[int, int, int, int, int | float, int | float]]
    asked: bool

    @property
    def word(self) -> str:
        """Return the word's spelling, as quoted in sentences."""
        return visible(spelling(self.trace.tokens, self.tokens))

    @property
    def kind(self) -> str:
        """Return the name of the measure in `cells`."""
        return "most unusual link" if len(self.trace.tokens) <= LONGEST else "strongest link"

    @property
    def shown(self) -> range:
        """Return the numbers of the drawn tokens, at most `LONGEST` around the word."""
        start = max(0, min(self.tokens[0] - LONGEST // 2, len(self.trace.tokens) - LONGEST))
        return range(start, min(start + LONGEST, len(self.trace.tokens)))

    def name(self, token: int) -> str:
        """Return a token's text, cut to 14 characters, to be written next to its weight."""
        return display_text(self.trace.tokens[token].text.strip() or self.trace.tokens[token].text, 14)

    def where(self) -> str:
        """Return the name of the layer and head of the arcs."""
        if self.head is None:
            return "the links that stand out"
        layer, head = self.head
        return f"layer {layer}, {mean_or_head(head)}"


@dataclass(frozen=True)
class Movement:
    """A word's movement: one curve of cosines per drawn text, other curves, and the range in neutral sentences.

    ends: if curves are differences of two cosines, the reference words that the word is closer to above and below 0.
    cosines: the last two cosines of each such curve.
    """

    title: str
    curves: Sequence[Curve]
    others: Sequence[Curve] = ()
    band: tuple[Curve, Curve, Curve] | None = None  # mean, low, high
    ends: tuple[str, str] | None = None
    cosines: Sequence[Sequence[int | float | None]] = ()


def drawable_layers(trace: Trace) -> list[int]:
    """Return the numbers of the layers whose queries and keys are all tokens of the trace."""
    size = len(trace.tokens)
    return [n for n in kept_numbers(trace.attention) if trace.attention[n].shape[1:] == (size, size)] if size else []


def choose_lines(summary: Summary, traces: Sequence[Trace], layer: int | None, head: int | None) -> list[TextLine]:
    """Choose the texts to draw: those of the two occurrences that end furthest apart or, without a word, all texts.

    layer, head: draw the weights of this layer and head. None: those that the sentences name.
    """
    layer, head = check_heads(traces[0], layer, head)
    chosen: list[tuple[int, Occurrence | None]] = [(n, None) for n in range(len(traces))]
    if summary.word is not None:
        distant = furthest_apart(summary)
        words = [word for word in summary.occurrences if distant is not None and word.label in (distant.a, distant.b)]
        chosen = [(word.text, word) for word in words or summary.occurrences[:2]]
    chosen = [(text, occurrence) for text, occurrence in chosen if drawable_layers(traces[text])]
    row = summary.word is not None and len(chosen) > 1
    return [_choose_line(summary, traces[text], text, occurrence, layer, head, row) for text, occurrence in chosen]


def _choose_line(
    summary: Summary, trace: Trace, text: int, word: Occurrence | None, layer: int | None, head: int | None, row: bool
) -> TextLine:
    """Choose a text's word and arcs. row: draw all weights of one head's row instead of the distinctive links."""
    sinks, layers = [sink.token for sink in summary.sinks[text]], drawable_layers(trace)
    excluded = frozenset(sinks) | {n for n, token in enumerate(trace.tokens) if token.special}
    named = summary.highlights[text].links if summary.highlights else []
    heads = range(trace.attention[layers[0]].shape[0])
    short = len(trace.tokens) <= LONGEST
    maps = [*divergence_maps(trace.tokens, trace.attention, sinks, layers, heads)] if short else []
    links = standing_out(named, maps) if short and not row else []
    best: Any = most_distinctive_link(trace, layer, head, sinks) if word is None else None
    last = max((n for n, token in enumerate(trace.tokens) if not token.special), default=len(trace.tokens) - 1)
    tokens = word.tokens if word is not None else [last if best is None else best.query]
    if word is not None:
        searched = layers if layer is None else [layer]
        groups = specific_weights(trace, [tokens], sinks, layers=searched, head=head, words_alone=True)
        best = max((weight for group in groups for weight in group), key=lambda weight: weight.divergence, default=None)
    requested, at = layer is not None or head is not None, None
    if not requested and best is not None and best.divergence < DISTINCTIVE:
        best = None
    rows = {n: attention_from(trace.attention[n], tokens).cpu().double() for n in layers}
    others = [n for n in range(len(trace.tokens)) if n not in excluded and n not in tokens]
    cells = [(rows[n][:, others].amax(1) if others else rows[n].sum(1) * 0).tolist() for n in layers]
    if maps:
        unusual = [attention_from(divergence, tokens).amax(1) for *_, divergence in maps]
        scale = max(DISTINCTIVE, *(float(values.max()) for values in unusual))
        cells = [(values / scale).tolist() for values in unusual]
    arcs: Sequence[Arc] = [(k, weight, n, h) for q, k, n, h, weight, _ in links if q in tokens][:ARCS]
    if requested or not arcs:
        at = (_layer_without_link(summary, layers) if layer is None else layer, head)
        at = at if best is None else (best.layer, best.head)
        weights = rows[at[0]].mean(0) if at[1] is None else rows[at[0]][at[1]]
        arcs = [(k, weight, *at) for k, weight in enumerate(weights.tolist()) if k not in tokens]
    label = summary.labels[text] if word is None else word.label
    return TextLine(label, trace, tokens, excluded, at, arcs, layers, cells, links, requested)


def _layer_without_link(summary: Summary, layers: Sequence[int]) -> int:
    """Return the layer to draw for a text without a distinctive link: the one at which the page opens."""
    if (link := first_link(summary)) is not None:
        return link.layer
    row = layer_looked_at(summary)
    return layers[0] if row is None else summary.occurrences[0].attends[row].layer


def movement(summary: Summary, lines: Sequence[TextLine]) -> Movement | None:
    """Choose the curves of a word's movement through the layers. Return None if the traces have no hidden states."""
    if summary.word is None or summary.massive is None or len(lines) < 2:
        return None
    labels, all_curves = [occurrence.label for occurrence in summary.occurrences], curves(summary)
    at = [labels.index(line.label) for line in lines]
    if (diff := summary.difference) is not None:
        (one, two), paths = diff.words, {curve.word: curve.paths for curve in all_curves}
        gaps = [[None if a is None or b is None else a - b for a, b in zip(paths[one][n], paths[two][n], strict=True)]
                for n in at]  # fmt: skip
        last, title = [[paths[word][n][-1] for word in (one, two)] for n in at], f"Nearer “{one}” or “{two}”, by layer"
        return Movement(title, gaps, (), (diff.mean, diff.low, diff.high), (one, two), last)
    if summary.references:
        widest = max(all_curves, key=lambda curve: abs((curve.paths[at[0]][-1] or 0) - (curve.paths[at[1]][-1] or 0)))
        neutral = widest.neutral
        band = None if neutral is None else (neutral.mean, neutral.low, neutral.high)
        rest = [path for n, path in enumerate(widest.paths) if n not in at]
        title = f"Cosine of “{summary.word}” to “{widest.word}”, by layer"
        return Movement(title, [widest.paths[n] for n in at], rest, band)
    pairs = sorted(summary.pairs, key=lambda pair: {pair.a, pair.b} != {line.label for line in lines})
    title = f"Cosine of the two “{summary.word}” vectors, by layer"
    return Movement(title, [pairs[0].hidden_states], [pair.hidden_states for pair in pairs[1:]])


def split_by_colour(
    sentence: str, lines: Sequence[TextLine], followed: str, words: set[str]
) -> list[tuple[str, int | None, bool]]:
    """Split a sentence into (piece, drawn text that determines the colour, whether in brackets), like the page.

    followed: the followed word, which has no colour. words: the words that the plot shows, in lower case.
    """
    cut: list[tuple[str, int | None, bool]] = []
    for clause in CLAUSES.findall(sentence):
        at = re.search(rf"\b(?:text|occurrence) (\w+)|\bthe ({'|'.join(ORDINALS)}) (?:“|occurrence|to )", clause, re.I)
        label = at and (at[1] or f"1{ascii_lowercase[ORDINALS.index(at[2].lower())]}")
        of = 0 if len(lines) == 1 else next((n for n, line in enumerate(lines) if line.label == label), None)
        for part in filter(None, PARTS.split(clause)):
            is_token = part.startswith("“") and part != f"“{followed}”" and part[1:-1].lower() in words
            cut.append((part, of if is_token else None, part.startswith("(")))
    return cut


def written_tokens(line: TextLine) -> list[tuple[str, bool]]:
    """Return each token as spelled in its text, and whether a space precedes it."""
    texts: list[tuple[str, bool]] = []
    end, blank = 0, False
    for token in line.trace.tokens:
        letters = token.source[max(end, token.start) : token.end] if token.source else token.text
        text = visible(letters.strip()) or display_text(token.text)
        blank = bool(texts) and (blank or token.special or token.start > end or letters != letters.lstrip())
        texts.append((re.sub(r"[][<>|]", "", text) or text if token.special else text, blank))
        end, blank = max(end, token.end), token.special
    return texts


def layout(
    line: TextLine, width: Callable[[str], int | float], room: int | float
) -> list[tuple[int | float, int | float, int]]:
    """Return (left, width, line number) of each drawn token. width: measures a text. room: the width of a line."""
    tokens = written_tokens(line)[line.shown.start : line.shown.stop]
    special = [token.special for token in line.trace.tokens[line.shown.start : line.shown.stop]]  # drawn smaller
    widths = [width(text) * (0.5 if small else 1.0) for (text, _), small in zip(tokens, special, strict=True)]
    x, row, boxes = 0.0, 0, []
    for n, (_, blank) in enumerate(tokens):
        word = next((m for m in range(n + 1, len(tokens)) if tokens[m][1]), len(tokens))
        x += width(" ") if blank and x else 0.0
        if x and x + (sum(widths[n:word]) if blank else widths[n]) > room:
            x, row = 0.0, row + 1
        boxes.append((x, widths[n], row))
        x += widths[n]
    return boxes
