"""Build the page's data on a word's movement through the layers: its cosines and its residual updates.

`web/src/data/format.ts` describes the fields.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence

from regard.capture.interventions.names import TEXTS, Part
from regard.display.panels import Cell, Column, Data, Shares, Table
from regard.explain.causes.layer_updates import LARGEST_SHARES, LayerUpdate
from regard.explain.texts.occurrences import WordUpdates
from regard.explain.texts.summary import Summary, curves
from regard.explain.wording import called, listed, signed
from regard.text.quoting import display_text, quoted, short, visible

SMALLEST_CONTRIBUTION = 0.02  # smallest contribution to a residual update for which a token is named
REACH = 60  # characters of context on either side of the word
MAX_COMPARED = 50  # occurrences; with more, they aren't all compared state by state
MAX_NAMED_TOKENS = 3  # tokens named per residual update
SHARES = (
    "What attention and feed-forward (the rest of the layer, with its norms) contribute to each layer's residual "
    "update. Contributions sum to 1, and a contribution below 0 works against the update."
)


def movement_panels(summary: Summary, names: Sequence[str] | None = None) -> list[Data]:
    """Return a panel on a word's movement for each stack whose trace has the word's hidden states.

    It has the paths of the word's occurrences, each layer's residual update, and sentences. names: the texts' names, to
    be shown instead of numbers.
    """
    sides, panels = list(_stacks_with_word(summary)), list[Data]()
    for part, side in sides:
        if side.massive is None:
            continue
        word, labels = quoted(short(side.word or "")), [occurrence.label for occurrence in side.occurrences]
        pairs = {(pair.a, pair.b): list(map(_rounded, pair.hidden_states)) for pair in side.pairs}
        compared = len(labels) <= MAX_COMPARED
        sentences = []
        if side.massive:
            left_out = listed([
                f"{quoted(out.name)}{f' {out.of}' if out.of else ''} ({out.times:.0f} times the median length)"
                for out in side.massive
            ])  # fmt: skip
            sentences.append(f"Cosines say little for massive activations: {visible(left_out)}.")
        if not compared:
            sentences.append(f"{len(labels)} paths are too many to compare with each other (at most {MAX_COMPARED}).")
        last = len(side.occurrences[0].hidden_states) - 2
        word_name = quoted(side.word or "")
        nearness = f"Cosine of {word_name} to the vector that enters layer 0, after each layer"
        if side.references:
            nearness = f"Cosine of {word_name} to each reference word, both in the same layer"
        if side.references and side.neutral:
            nearness += f". Dotted: the mean in {side.neutral[0].sentences} neutral sentences. Shaded: their range"
        panels.append({
            "kind": "paths", "name": f"Movement, {TEXTS[part]}" if len(sides) > 1 else "Movement",
            "title": f"How {word} moves through the layers" + (f" of the {TEXTS[part]}" if part else ""),
            "note": f"Each line is one occurrence of {word}: in is its vector before layer 0, n its vector after layer "
                    "n. The last is the contextual embedding.",
            "digits": 3, "states": [
                "enters layer 0", *(f"leaves layer {n}" for n in range(last)),
                f"leaves layer {last}: the contextual embedding",
            ],
            "paths": _path_data(side, part, names, summary if part == "decoder" else None),
            "curves": [
                {
                    "label": "itself as it enters layer 0" if curve.word is None else curve.word,
                    "paths": [list(map(_rounded, path)) for path in curve.paths],
                    "neutral": curve.neutral and {
                        "sentences": curve.neutral.sentences,
                        **{name: list(map(_rounded, getattr(curve.neutral, name))) for name in ("mean", "low", "high")},
                    },
                }
                for curve in curves(side)
            ], "compared": bool(side.references), "nearness": visible(nearness),
            "sentences": sentences,
            "between": [[pairs[a, b] for a in labels[:n]] for n, b in enumerate(labels)] if compared else None,
            "shares": SHARES,
        })  # fmt: skip
    return panels


def notes_on_movement(summary: Summary) -> list[str]:
    """Return a note for each stack whose trace lacks the hidden states that show the word's movement."""
    reason = "a trace does not hold all hidden states"
    return [missing(side.word or "", reason) for _, side in _stacks_with_word(summary) if side.massive is None]


def _stacks_with_word(summary: Summary) -> Iterator[tuple[Part | None, Summary]]:
    """Yield each stack whose text has the word, with its summary: "encoder", "decoder", or None for a single stack."""
    stacks: list[tuple[Part | None, Summary]] = [(None, summary)]
    if summary.target is not None:
        stacks = [("encoder", summary), ("decoder", summary.target.summary)]
    return ((part, stack) for part, stack in stacks if stack.occurrences)


def _path_data(summary: Summary, part: Part | None, names: Sequence[str] | None, source: Summary | None) -> list[Data]:
    """Return each occurrence's path: its context, cosines between successive states, and residual updates."""
    updates = {word.occurrence: word for word in summary.layer_updates}
    paths = []
    for occurrence in summary.occurrences:
        text, word = occurrence.text, updates[occurrence.label]
        name = f"{TEXTS[part]} {text + 1}" if names is None else names[text]
        if summary.windows:
            window = summary.windows[text]
            text_name = f"text {window.text + 1}" if names is None else names[window.text]
            name = f"{text_name}, tokens {window.start} to {window.stop - 1}"
        steps = None if word.updates is None else [_update_data(step, text, summary, source) for step in word.updates]
        paths.append({
            "label": occurrence.label, "of": name,
            "context": _word_in_context(summary.texts[text], occurrence.start, occurrence.end),
            "before": [None, *map(_rounded, occurrence.cosines_to_state_before())], "steps": steps,
            "refused": word.refused,
        })  # fmt: skip
    return paths


def _word_in_context(text: str, start: int, end: int) -> Data:
    """Return the word, text[start:end], with some text on either side, cut at word boundaries."""
    left, right = text[max(0, start - REACH) : start], text[end : end + REACH]
    if start > REACH:
        left = "… " + (left.split(maxsplit=1)[-1] if " " in left.strip() else left)
    if len(text) > end + REACH:
        right = (right.rsplit(maxsplit=1)[0] if " " in right.strip() else right) + " …"
    return {"left": left.replace("\n", " "), "form": text[start:end], "right": right.replace("\n", " ")}


def _update_data(update: LayerUpdate, text: int, summary: Summary, source: Summary | None) -> Data:
    """Return a residual update's length, its components' contributions, and the tokens that contribute most."""
    attention, texts = update.attention, summary
    if update.cross is not None and source is not None:
        attention, texts = update.cross, source
    counts, sinks = Counter(token.text for token in texts.tokens[text]), {sink.token for sink in texts.sinks[text]}
    largest = ", ".join(
        f"{quoted(display_text(token.text))}{f' ({token.token})' if counts[token.text] > 1 else ''}"
        f"{' (sink)' if token.token in sinks else ''} {signed(token.share, '.2f')}"
        for token in ([] if attention is None else attention.top[:MAX_NAMED_TOKENS])
        if abs(token.share) >= SMALLEST_CONTRIBUTION
    )
    return {
        "length": _rounded(update.length),
        "attention": None if update.attention is None else _rounded(update.attention.share),
        "cross": None if update.cross is None else _rounded(update.cross.share),
        "rest": _rounded(update.feed_forward_share),
        "most": largest,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else round(value, 6)


def missing(word: str, reason: str) -> str:
    """Return the note that says why a word's movement isn't shown."""
    return f"The path of {quoted(short(word))} through the layers is not shown: {reason}."


def updates_table(word: WordUpdates, summary: Summary, side: str, source: Summary | None, name: str) -> Table:
    """Return a table of each layer's residual update, split into attention (by token) and the rest of the layer."""
    occurrence = next(item for item in summary.occurrences if item.label == word.occurrence)
    steps = word.updates or []
    crosses = any(step.cross for step in steps)
    texts = source if crosses and source is not None else summary
    sinks, tokens = {sink.token for sink in texts.sinks[occurrence.text]}, texts.tokens[occurrence.text]
    rows: list[list[Cell]] = []
    for step in steps:
        attention = step.cross or step.attention
        top = [(called(part.token, tokens) + ", sink" * (part.token in sinks), part.share)
               for part in (attention.top if attention else ())]  # fmt: skip
        shares = [None if part is None else part.share for part in (step.attention, step.cross)[: 1 + crosses]]
        rows.append([str(step.layer), step.length, *shares, step.feed_forward_share, Shares(top, signed=True)])
    note = "Contributions to the residual update sum to 1. Rest: feed-forward and norms. "
    note += f"Tokens: contributions through {'cross-attention' if crosses else 'attention'}."
    parts = [Column("attention", 2), *([Column("cross", 2)] if crosses else []), Column("rest", 2)]
    return Table(
        name=name, title=f"Residual updates of {quoted(occurrence.word)} in {side} {word.occurrence}",
        note=note if steps else f"Not shown: {word.refused}.",
        columns=[Column("layer"), Column("length", 2, unbounded=True), *parts, Column(LARGEST_SHARES)], rows=rows,
    )  # fmt: skip
