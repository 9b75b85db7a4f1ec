"""A long text that was read in windows, as the texts that its windows were to the model."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.errors import RegardError
from regard.models.windows import WindowedTrace
from regard.text.words import Word
from regard.trace.trace import Trace


@dataclass(frozen=True)
class Window:
    """Where a shown text comes from: window number `window` of text `text`, with its tokens [start, stop).

    windows: how many that text has in all.
    """

    text: int
    window: int
    windows: int
    start: int
    stop: int


@dataclass(frozen=True)
class Unfolded:
    """Windows as texts of their own: their traces, where each comes from, and the followed word's occurrences in each.

    Every occurrence is in one window, the one in which it stands furthest from an edge; windows without one are left
    out where a word is followed.
    """

    traces: list[Trace]
    windows: list[Window]
    found: list[tuple[int, list[Word]]]


def unfold_texts_to_windows(texts: Sequence[WindowedTrace], word: str | None) -> Unfolded:
    """Return the windows to look at, of one long text or several."""
    made = Unfolded([], [], [])
    for number, text in enumerate(texts):
        try:
            words = None if word is None else text.word(word)
        except RegardError as error:
            raise RegardError(f"text {number + 1}: {error}" if len(texts) > 1 else str(error)) from None
        homes = None if words is None else [(text.window_of(each), text.locate(each)[1]) for each in words]
        for n, trace in enumerate(text.windows):
            own = [] if homes is None else [each for home, each in homes if home == n]
            if homes is None or own:
                made.found.append((len(made.traces), own))
                made.traces.append(trace)
                made.windows.append(Window(number, n, len(text.windows), *text.spans[n]))
    return made
