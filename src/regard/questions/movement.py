"""Write a word's way through the layers for a page: how near it is to reference words, its plane, each layer's shares.

`web/src/data/format.ts` says what each part is; a page draws it with a component of its own.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from regard.capture.interventions.names import TEXTS, Part
from regard.display.panels import Data
from regard.display.sentences import Template, sentences
from regard.explain.causes.layer_updates import Attending, LayerUpdate
from regard.explain.texts.occurrences import path_cosines
from regard.explain.texts.summary import Summary, curves
from regard.explain.vectors.movement import LeftOut, Movement
from regard.explain.wording import listed, signed
from regard.text.quoting import display_text, quoted, short, some_of, visible

SMALLEST_CONTRIBUTION = 0.02  # to a residual update: what is worth naming
REACH = 60  # characters of a text on either side of the word
MAX_COMPARED = 50  # paths up to which each two of them are compared, state by state
MAX_NAMED_TOKENS = 3  # of a residual update
SHARES = (
    "What attention and feed-forward (the rest of the layer, with its norms) contribute to each layer's residual "
    "update. Contributions sum to 1, and a contribution below 0 works against the update."
)
MAX_PLANE_SENTENCES = 5
MAX_NAMED_ENDS = 12
TABLE: list[list[Template]] = [
    [
        ("only the curves are drawn. {no_plane}.", None),
        ("the neutral sentences are not drawn. {first_tried}.", lambda n: n["without_neutral"]),
        ("only the first and the last state are drawn. {first_tried}.", None),
    ],
    [("massive activations are not drawn: {left_out}.", None)],
    [
        ("from each ◆ to ★ and ○, and from each ★ and ○ to ◆, nearer means a larger cosine in all {width} dimensions.",
         lambda n: n["to_references"] and n["neutral"]),
        ("from each ◆ to ★, and from each ★ to ◆, nearer means a larger cosine in all {width} dimensions.",
         lambda n: n["to_references"]),
        ("from each state, a nearer state has the larger cosine in all {width} dimensions.",
         lambda n: n["paths"] == 1),
        ("along a path, from its start, and between paths at the same layer, nearer points have larger cosines in all "
         "{width} dimensions.", None),
    ],
    [
        ("an arrow leads to each end, because its cosine to some reference word is outside the neutral range.",
         lambda n: n.get("neutral") and not n["inside"]),
        ("no arrow leads to ends within the neutral range: {inside}.", lambda n: n.get("neutral")),
    ],
    [("the plane keeps {kept:%} of the variance of {of}.", None)],
]  # fmt: skip


def movement_panels(summary: Summary, names: Sequence[str] | None = None) -> list[Data]:
    """Write a panel for each side of the texts on which the word's states are held; of two sides each by its name.

    names: of the texts, where numbers are not enough.
    """
    sides, panels = list(_sides(summary)), []
    for part, side in sides:
        if side.movement is not None:
            name = f"Movement, {TEXTS[part]}" if len(sides) > 1 else "Movement"
            source = summary if part == "decoder" else None
            panels.append({"kind": "paths", "name": name} | _panel(side, side.movement, part, names, source))
    return panels


def not_shown(summary: Summary) -> list[str]:
    """Say of which sides the word's way is not shown, since traces hold no states."""
    why = "a trace does not hold all hidden states"
    return [missing(side.word or "", why) for _, side in _sides(summary) if side.movement is None]


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
    word, count = quoted(short(summary.word or "")), len(summary.occurrences)
    too_many = [f"{count} paths are too many to compare with each other (at most {MAX_COMPARED})."]
    before, between = path_cosines(summary.occurrences, compared=count <= MAX_COMPARED)
    last = len(summary.occurrences[0].hidden_states) - 2
    return {
        "title": f"How {word} moves through the layers" + (f" of the {TEXTS[part]}" if part else ""),
        "note": f"Each line is {word} in one text: in is its vector before layer 0, n its vector after layer n, and ★ "
                "its vector at the end, the contextual embedding.",
        "digits": 3, "states": [
            {"mark": "in", "name": "enters layer 0"},
            *({"mark": str(n), "name": f"leaves layer {n}"} for n in range(last)),
            {"mark": "★", "name": f"leaves layer {last}: the contextual embedding"},
        ],
        "paths": _paths(summary, moved, before, part, names, source),
        "curves": [
            {
                "label": "itself as it enters layer 0" if curve.word is None else curve.word,
                "paths": [list(map(_rounded, path)) for path in curve.paths],
                "neutral": curve.neutral and {
                    "sentences": curve.neutral.sentences,
                    **{name: list(map(_rounded, getattr(curve.neutral, name))) for name in ("mean", "low", "high")},
                },
            }
            for curve in curves(summary)
        ], "nearness": visible(movement_curves_title(summary)),
        "drawn": moved.states, "plane": None if not moved.states else visible(plane_title(summary) or ""),
        "neutral": None if moved.neutral is None else _point(moved.neutral),
        "sentences": [visible(sentence) for sentence in plane_sentences(summary)] + too_many * (between is None),
        "marks": _marks(summary, moved),
        "between": between and [[list(map(_rounded, cosines)) for cosines in path] for path in between],
        "shares": SHARES,
    }  # fmt: skip


def _paths(
    summary: Summary, moved: Movement, before: Sequence[Sequence[float]], part: Part | None,
    names: Sequence[str] | None, source: Summary | None,
) -> list[Data]:  # fmt: skip
    """Write each occurrence: its text, points on the plane, cosines from state to state and residual updates.

    before: of each state but the first, its cosine to the one before.
    """
    excluded = {place.of: visible(left_out(place)) for place in moved.left_out if place.kind == "word"}
    updates = {word.occurrence: word for word in summary.layer_updates}
    paths = []
    for n, occurrence in enumerate(summary.occurrences):
        text, points, word = occurrence.text, moved.words[n], updates[occurrence.label]
        name = f"{TEXTS[part]} {text + 1}" if names is None else names[text]
        if summary.windows:
            window = summary.windows[text]
            whole = f"text {window.text + 1}" if names is None else names[window.text]
            name = f"{whole}, tokens {window.start} to {window.stop - 1}"
        steps = None if word.updates is None else [_step(step, text, summary, source) for step in word.updates]
        paths.append({
            "label": occurrence.label, "of": name,
            "context": _context(summary.texts[text], occurrence.start, occurrence.end),
            "points": None if points is None else [_point(point) for point in points],
            "leaves": moved.leaves[n], "missing": excluded.get(occurrence.label),
            "before": [None, *map(_rounded, before[n])], "steps": steps, "refused": word.refused,
        })  # fmt: skip
    return paths


def _point(place: Sequence[float]) -> list[float]:
    return [round(each, 6) for each in place]


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
    words = list(dict.fromkeys(reference.word for reference in summary.references))
    return [
        {
            "label": word,
            "point": None if point is None else _point(point),
            "missing": gone.get(word),
            "cosines": [
                _rounded(reference.last_hidden_state) for reference in summary.references if reference.word == word
            ],
        }
        for word, point in zip(words, moved.references, strict=True)
    ]


def _step(update: LayerUpdate, text: int, summary: Summary, source: Summary | None) -> Data:
    """Write one residual update: its length, the contributions of its parts, and the tokens that contribute most."""
    most = _most(update.attention, summary, text)
    if update.cross is not None and source is not None:
        most = _most(update.cross, source, text)
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
        f"{quoted(display_text(each.text))}{f' ({each.token})' if counts[each.text] > 1 else ''}"
        f"{' (sink)' if each.token in sinks else ''} {signed(each.share, '.2f')}"
        for each in ([] if part is None else part.top[:MAX_NAMED_TOKENS])
        if abs(each.share) >= SMALLEST_CONTRIBUTION
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)


def missing(word: str, why: str) -> str:
    """Say that a word's path is not shown."""
    return f"The path of {quoted(short(word))} through the layers is not shown: {why}."


def movement_curves_title(summary: Summary) -> str:
    """Name what the curves beside the plane show."""
    word = quoted(summary.word or "")
    if not summary.references:
        return f"Cosine of {word} to the vector that enters layer 0, after each layer"
    title = f"Cosine of {word} to each reference word, both in the same layer"
    if not summary.neutral:
        return title
    return f"{title}. Dotted: the mean in {summary.neutral[0].sentences} neutral sentences. Shaded: their range"


def plane_title(summary: Summary) -> str | None:
    """Name what the plane shows; None where there is none."""
    moved, word = summary.movement, quoted(summary.word or "")
    if moved is None or not moved.states:
        return None
    if moved.fitted:
        neutral = f", ○ mean of {summary.neutral[0].sentences} neutral sentences" if moved.neutral else ""
        return f"Where {word} ends: ★ in each text{neutral}, ◆ each reference word alone"
    if len(moved.states) == 2:
        return f"{word} before layer 0 (in) and after the last layer (★)"
    return f"The path of {word} through the layers: in = before layer 0, n = after layer n, ★ = the end"


def plane_sentences(summary: Summary) -> list[str]:
    """Return what a reader of the plane has to know, or why there is none."""
    moved = summary.movement
    if moved is None:
        return []
    ends = [o.label for o, path in zip(summary.occurrences, moved.words, strict=True) if path]
    leaving = [o.label for o, far in zip(summary.occurrences, moved.leaves, strict=True) if far]
    reasons = [tried.disagreement or "No plane was found" for tried in moved.tried]
    numbers: dict[str, Any] = {
        "left_out": listed([left_out(each) for each in moved.left_out]) or None,
        "no_plane": reasons[-1] if reasons and not moved.states else None,
        "first_tried": reasons[0] if len(reasons) > 1 and moved.states else None,
        "without_neutral": bool(moved.tried) and moved.tried[0].neutral,
    }
    if moved.states:
        word = quoted(summary.word or "")
        own = "all states" if len(moved.states) > 2 else "the first and last states"
        fitted = f"the last vectors of {listed([*map(quoted, moved.fitted), word])}"
        numbers |= {
            "width": moved.width, "to_references": bool(moved.fitted), "neutral": moved.neutral is not None,
            "paths": len(ends), "kept": float(sum(moved.share)), "of": fitted if moved.fitted else f"{own} of {word}",
            "inside": some_of([label for label in ends if label not in leaving], MAX_NAMED_ENDS),
        }  # fmt: skip
    return sentences(TABLE, numbers, most=MAX_PLANE_SENTENCES)


def left_out(massive: LeftOut) -> str:
    """Name a massive activation, with the length of its state."""
    where = {"word": f" {massive.of}", "reference": ""}[massive.kind]
    return f"{quoted(massive.name)}{where} ({massive.times:.0f} times the median length)"
