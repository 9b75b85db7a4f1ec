"""Write a word's way through the layers for a page: how near it is to reference words, its plane, each layer's shares.

`web/src/data/format.ts` says what each part is; a page draws it with a component of its own.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from regard.capture.interventions.names import TEXTS, Part
from regard.display.panels import Data
from regard.explain.causes.layer_updates import Attending, LayerUpdate
from regard.explain.texts.curves import curves
from regard.explain.texts.summary import Occurrence, Summary
from regard.explain.vectors.movement import Movement
from regard.explain.vectors.neutral import Neutral
from regard.explain.vectors.similarity import unit
from regard.explain.wording import signed
from regard.questions.movement.sentences import left_out, missing, movement_curves_title, plane_sentences, plane_title
from regard.text.quoting import quoted, short, spelled, visible

REACH = 60  # characters of a text on either side of the word
PAIRED = 50  # paths up to which each two of them are compared, state by state
NAMED = 3  # tokens that gave most to a step
SHARES = (
    "What attention and feed-forward (the rest of the layer, with its norms) contribute to each layer's residual "
    "update. Contributions sum to 1, and a contribution below 0 works against the update."
)


def movement_panels(summary: Summary, names: Sequence[str] | None = None) -> list[Data]:
    """Write a panel for each side of the texts on which the word's states are held; of two sides each by its name.

    names: of the texts, where numbers are not enough.
    """
    sides = list(_sides(summary))
    made = []
    for part, own in sides:
        if own.movement is not None:
            called = f"Movement, {TEXTS[part]}" if len(sides) > 1 else "Movement"
            source = summary if part == "decoder" else None
            made.append({"kind": "paths", "name": called} | _panel(own, own.movement, part, names, source))
    return made


def not_shown(summary: Summary) -> list[str]:
    """Say of which sides the word's way is not shown, since traces hold no states."""
    why = "a trace does not hold all hidden states"
    return [missing(own.word or "", why) for _, own in _sides(summary) if own.movement is None]


def _sides(summary: Summary) -> Iterator[tuple[Part | None, Summary]]:
    """The sides on which the word stands: of an encoder-decoder "encoder" and "decoder", else one without a name."""
    read: list[tuple[Part | None, Summary]] = [(None, summary)]
    if summary.target is not None:
        read = [("encoder", summary), ("decoder", summary.target.summary)]
    return ((part, own) for part, own in read if own.occurrences)


def _panel(
    summary: Summary, moved: Movement, part: Part | None, names: Sequence[str] | None, source: Summary | None
) -> Data:
    """Write the paths of the word's occurrences, each layer's shares, and the sentences that belong to them.

    source: of a decoder's words, the texts that its cross-attention looks at.
    """
    word = quoted(short(summary.word or ""))
    vectors = torch.stack([_vectors(each) for each in summary.occurrences])
    between = None
    if not _not_compared(len(vectors)):
        between = [[_cosines(own, earlier) for earlier in vectors[:n]] for n, own in enumerate(vectors)]
    return {
        "title": f"How {word} moves through the layers" + (f" of the {TEXTS[part]}" if part else ""),
        "note": f"Each line is {word} in one text: in is its vector before layer 0, n its vector after layer n, and ★ "
                "its vector at the end, the contextual embedding.",
        "digits": 3, "states": _states(len(summary.occurrences[0].hidden_states)),
        "paths": _paths(summary, moved, vectors, part, names, source),
        "curves": _curves(summary), "nearness": visible(movement_curves_title(summary)),
        "drawn": moved.states, "plane": None if not moved.states else visible(plane_title(summary) or ""),
        "neutral": None if moved.neutral is None else _point(moved.neutral),
        "sentences": [visible(each) for each in plane_sentences(summary)] + _not_compared(len(vectors)),
        "marks": _marks(summary, moved), "between": between, "shares": SHARES,
    }  # fmt: skip


def _paths(
    summary: Summary, moved: Movement, vectors: Float[Tensor, "P N M"], part: Part | None,
    names: Sequence[str] | None, source: Summary | None,
) -> list[Data]:  # fmt: skip
    """Each occurrence: where it stands, its points on the plane, its cosines from state to state, its steps."""
    gone = {each.of: visible(left_out(each)) for each in moved.left_out if each.kind == "word"}
    updates = {each.occurrence: each for each in summary.layer_updates}
    paths = []
    for n, each in enumerate(summary.occurrences):
        points, own = moved.words[n], updates[each.label]
        paths.append({
            "label": each.label,
            "of": _of(summary, each, part, names),
            "context": _context(summary.texts[each.text], each.start, each.end),
            "points": None if points is None else [_point(point) for point in points],
            "leaves": moved.leaves[n],
            "missing": gone.get(each.label),
            "before": [None, *_cosines(vectors[n, 1:], vectors[n, :-1])],
            "steps": None if own.updates is None else [_step(update, each, summary, source) for update in own.updates],
            "refused": own.refused,
        })  # fmt: skip
    return paths


def _states(count: int) -> list[Data]:
    """What stands beside a state on the plane, and what it is called."""
    last = {"mark": "★", "name": f"leaves layer {count - 2}: the contextual embedding"}
    inner = [{"mark": str(n), "name": f"leaves layer {n}"} for n in range(count - 2)]
    return [{"mark": "in", "name": "enters layer 0"}, *inner, last]


def _point(place: Sequence[float]) -> list[float]:
    return [round(each, 6) for each in place]


def _vectors(occurrence: Occurrence) -> Float[Tensor, "N M"]:
    """The states of a path at length 1, as the plane has them: the last is the contextual embedding."""
    states = [each for each in occurrence.hidden_states[:-1] if each is not None]
    return unit(torch.tensor([*states, occurrence.last_hidden_state], dtype=torch.float64))


def _cosines(one: Float[Tensor, "N M"], other: Float[Tensor, "N M"]) -> list[float]:
    return [round(each, 6) for each in (one * other).sum(-1).tolist()]


def _not_compared(paths: int) -> list[str]:
    return [f"{paths} paths are too many to compare with each other (at most {PAIRED})."] if paths > PAIRED else []


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
    return {"left": left.replace("\n", " "), "form": text[start:end], "right": right.replace("\n", " ")}


def _marks(summary: Summary, moved: Movement) -> list[Data]:
    """The reference words where they end, with the cosines of every path's end to them."""
    gone = {each.name: visible(left_out(each)) for each in moved.left_out if each.kind == "reference"}
    words = list(dict.fromkeys(each.word for each in summary.references))
    return [
        {
            "label": word,
            "point": None if point is None else _point(point),
            "missing": gone.get(word),
            "cosines": [_rounded(each.last_hidden_state) for each in summary.references if each.word == word],
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
    most = _most(update.attention, summary, occurrence.text)
    if update.cross is not None and source is not None:
        most = _most(update.cross, source, occurrence.text)
    return {
        "length": _rounded(update.length),
        "attention": None if update.attention is None else _rounded(update.attention.share),
        "cross": None if update.cross is None else _rounded(update.cross.share),
        "rest": _rounded(update.feed_forward_share),
        "most": most,
    }


def _most(part: Attending | None, texts: Summary, text: int) -> str:
    """The tokens of a text that gave most to a step, with their numbers where the text has several such tokens."""
    counts = Counter(token.text for token in texts.tokens[text])
    sinks = {sink.token for sink in texts.sinks[text]}
    return ", ".join(
        f"{quoted(spelled(each.text))}{f' ({each.token})' if counts[each.text] > 1 else ''}"
        f"{' (sink)' if each.token in sinks else ''} {signed(each.share, '.2f')}"
        for each in ([] if part is None else part.top[:NAMED])
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)
