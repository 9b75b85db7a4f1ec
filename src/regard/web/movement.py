"""Write a word's way through the layers: how near it is to reference words, its plane, and each layer's shares."""

import math
from collections import Counter
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.names import STACKS, TEXTS, Part, check_part
from regard.explain.causes.layer_updates import LayerUpdate
from regard.explain.findings.path_plane import curves_title, left_out, plane_sentences, plane_title
from regard.explain.findings.wording import signed
from regard.explain.texts.curves import curves
from regard.explain.texts.summary import Occurrence, Summary
from regard.explain.vectors.movement import unit
from regard.explain.vectors.neutral import Neutral
from regard.text.quoting import quoted
from regard.views.terminal.layout import short, spelled, visible
from regard.web.page import Page
from regard.web.panels import in_context
from regard.web.score_rules import Data

REACH = 60  # characters of a text on either side of the word
PAIRED = 50  # paths up to which each two of them are compared, state by state
NAMED = 3  # tokens that gave most to a step


def add_movement(page: Page, summary: Summary, names: Sequence[str] | None = None) -> int | None:
    """Add the paths of a summary's word to a page; returns the number of the first panel, None where there is none.

    names: of the texts, where numbers are not enough.
    """
    read: list[tuple[Part | None, Summary]] = [(None, summary)]
    if summary.target is not None:
        read = [("encoder", summary), ("decoder", summary.target.summary)]
    read = [(part, own) for part, own in read if own.occurrences]
    first = None
    for part, own in read:
        if own.movement is None:
            page.findings = [*page.findings, missing(own.word or "", "a trace does not hold all hidden states")]
            continue
        first = len(page.panels) if first is None else first
        page.panels.append(movement_panel(own, part, names, source=summary if part == "decoder" else None))
        if len(read) > 1:
            page.panels[-1]["name"] = f"Movement, {TEXTS[part]}"
    return first


def missing(word: str, why: str) -> str:
    """Say that a word's path is not shown."""
    return f"The path of {quoted(short(word))} through the layers is not shown: {why}."


def movement_panel(
    summary: Summary, part: Part | None = None, names: Sequence[str] | None = None, *, source: Summary | None = None
) -> Data:
    """Write the paths of the word's occurrences, each layer's shares, and the sentences that belong to them.

    part: of an encoder-decoder, "encoder" or "decoder", whose texts they are. source: of the decoder's, the texts that
    its cross-attention looks at.

    Raises:
        RegardError: another part.
    """
    check_part(part, STACKS)
    moved = summary.movement
    assert moved is not None
    count = len(summary.occurrences[0].hidden_states)
    word, states = quoted(short(summary.word or "")), _states(count)
    vectors = torch.stack([_vectors(each) for each in summary.occurrences])
    alike = _between(vectors)
    note = (
        f"Each line is {word} in one text, from how it enters the first layer (in) through how it leaves layer n (n) "
        "to the end (★), its contextual embedding."
    )
    said = [visible(each) for each in plane_sentences(summary)]
    if alike is None:
        said.append(f"{len(vectors)} paths are not compared with each other: {PAIRED} are the most.")
    gone = {each.of: visible(left_out(each)) for each in moved.left_out if each.kind == "word"}
    steps = {each.occurrence: each for each in summary.layer_updates}
    paths: list[Data] = []
    for n, (each, path) in enumerate(zip(summary.occurrences, moved.words, strict=True)):
        step = steps[each.label]
        paths.append(
            {
                "label": each.label,
                "of": _of(summary, each, part, names),
                "context": _context(summary.texts[each.text], each.start, each.end),
                "points": None if path is None else [[round(x, 6), round(y, 6)] for x, y in path],
                "leaves": moved.leaves[n],
                "missing": gone.get(each.label),
                "before": [None, *_cosines(vectors[n, 1:], vectors[n, :-1])],
                "steps": None if step.updates is None else [_step(u, each, summary, source) for u in step.updates],
                "refused": step.refused,
            }
        )
    return {
        "kind": "paths", "name": "Movement", "note": note, "digits": 3, "states": states, "paths": paths,
        "title": f"How {word} moves through the layers" + (f" of the {TEXTS[part]}" if part else ""),
        "curves": _curves(summary), "nearness": visible(curves_title(summary)),
        "drawn": moved.states, "plane": None if not moved.states else visible(plane_title(summary) or ""),
        "neutral": None if moved.neutral is None else [round(each, 6) for each in moved.neutral],
        "sentences": said, "marks": _marks(summary), "between": alike, "shares": SHARES,
    }  # fmt: skip


SHARES = (
    "What made the step of each layer, in shares that sum to 1: attention, and feed-forward, which is all the rest of "
    "the layer, its norms included. A share below 0 pulled the other way."
)


def _states(count: int) -> list[Data]:
    """What stands beside a state on the plane, and what it is called."""
    last = {"mark": "★", "name": f"leaves layer {count - 2}: the contextual embedding"}
    inner = [{"mark": str(n), "name": f"leaves layer {n}"} for n in range(count - 2)]
    return [{"mark": "in", "name": "enters layer 0"}, *inner, last]  # type: ignore[list-item]


def _vectors(occurrence: Occurrence) -> Float[Tensor, "N M"]:
    """The states of a path at length 1, as the plane has them: the last is the contextual embedding."""
    states = [each for each in occurrence.hidden_states[:-1] if each is not None]
    return unit(torch.tensor([*states, occurrence.contextual], dtype=torch.float64))


def _cosines(one: Float[Tensor, "N M"], other: Float[Tensor, "N M"]) -> list[float]:
    return [round(each, 6) for each in (one * other).sum(-1).tolist()]


def _between(vectors: Float[Tensor, "P N M"]) -> list[list[list[float]]] | None:
    """The cosines of each path's states to those of every earlier path; None of more paths than are compared."""
    if len(vectors) > PAIRED:
        return None
    return [[_cosines(own, earlier) for earlier in vectors[:n]] for n, own in enumerate(vectors)]


def _of(summary: Summary, occurrence: Occurrence, part: Part | None, names: Sequence[str] | None) -> str:
    """Whose path it is, in words."""
    if summary.windows:
        window = summary.windows[occurrence.text]
        name = f"text {window.text + 1}" if names is None else names[window.text]
        return f"{name}, tokens {window.start} to {window.stop - 1}"
    return f"{TEXTS[part]} {occurrence.text + 1}" if names is None else names[occurrence.text]


def _context(text: str, start: int, end: int) -> Data:
    """The word with some of the text around it, cut where words end."""
    left, right = text[max(0, start - REACH) : start], text[end : end + REACH]
    if start > REACH:
        left = "… " + (left.split(maxsplit=1)[-1] if " " in left.strip() else left)
    if len(text) > end + REACH:
        right = (right.rsplit(maxsplit=1)[0] if " " in right.strip() else right) + " …"
    return in_context(_line(left), text[start:end], _line(right))


def _line(text: str) -> str:
    return " ".join(text.split("\n"))


def _marks(summary: Summary) -> list[Data]:
    """The reference words where they end, with the cosines of every path's end to them."""
    moved = summary.movement
    assert moved is not None
    gone = {each.name: visible(left_out(each)) for each in moved.left_out if each.kind == "reference"}
    words = list(dict.fromkeys(each.word for each in summary.references))
    return [
        {
            "label": word,
            "point": None if point is None else [round(each, 6) for each in point],
            "missing": gone.get(word),
            "cosines": [_rounded(each.contextual) for each in summary.references if each.word == word],
        }
        for word, point in zip(words, moved.references, strict=True)
    ]


def _curves(summary: Summary) -> list[Data]:
    """The cosines to each reference word, state by state, of each path and of the word in neutral sentences."""
    return [
        {
            "label": "itself as it enters layer 0" if each.word is None else each.word,
            "paths": [[_rounded(c) for c in path] for path in each.paths],
            "neutral": None if each.neutral is None else _range(each.neutral),
        }
        for each in curves(summary)
    ]


def _range(neutral: Neutral) -> Data:
    """A reference word's cosines to the word in neutral sentences: mean, smallest and largest of each state."""
    numbers = {"mean": neutral.mean, "low": neutral.low, "high": neutral.high}
    return {"sentences": neutral.sentences, **{name: [_rounded(c) for c in each] for name, each in numbers.items()}}


def _step(update: LayerUpdate, occurrence: Occurrence, summary: Summary, source: Summary | None) -> Data:
    """One layer's step: its length, the shares of its parts, and the tokens with the largest ones through attention."""
    cross = update.cross is not None and source is not None
    part, texts = (update.cross, source) if cross else (update.attention, summary)
    assert texts is not None
    tokens = texts.tokens[occurrence.text]
    counts = Counter(token.text for token in tokens)
    sinks = {sink.token for sink in texts.sinks[occurrence.text]}
    most = [
        f"{quoted(spelled(each.text))}{f' ({each.token})' if counts[each.text] > 1 else ''}"
        f"{' (sink)' if each.token in sinks else ''} {signed(each.share, '.2f')}"
        for each in ([] if part is None else part.top[:NAMED])
    ]
    return {
        "length": _rounded(update.length),
        "attention": None if update.attention is None else _rounded(update.attention.share),
        "cross": None if update.cross is None else _rounded(update.cross.share),
        "rest": _rounded(update.feed_forward_share),
        "most": ", ".join(most),
    }  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)
