"""Follow the word that was asked for: its reference words, and its path through the layers before and after."""

from collections.abc import Sequence

from regard.errors import RegardError
from regard.explain.texts.window_texts import unfold_texts_to_windows
from regard.models.control import trace_word
from regard.models.model import Model
from regard.models.windows import WindowedTrace
from regard.questions.movement.panels import movement_panels, not_shown
from regard.questions.movement.sentences import missing
from regard.questions.see.answer import on_a_page
from regard.server.asked import TraceAsked
from regard.server.work import Limits
from regard.trace.trace import PairTrace, Trace
from regard.web.page import Page

AnyTrace = Trace | PairTrace | WindowedTrace


def reference_traces(model: Model, asked: TraceAsked) -> list[Trace]:
    """The reference words, each traced as a text of its own; of a model that reads pairs, as its encoder reads it."""
    if asked.references and asked.word is None:
        raise RegardError("references: they are words that a word is compared with: give word as well")
    return [trace_word(model, each, "references:") for each in dict.fromkeys(map(str.strip, asked.references))]


def too_often(traces: Sequence[AnyTrace], word: str | None, limits: Limits) -> str | None:
    """Say that the word stands there too often for its paths to be compared in time; None where it does not."""
    if word is None:
        return None
    windowed = [each for each in traces if isinstance(each, WindowedTrace)]
    count = sum(len(words) for _, words in unfold_texts_to_windows(windowed, word).found) if windowed else 0
    for trace in traces:
        if not isinstance(trace, WindowedTrace):
            count += max(_occurrences_to_follow(side, word) for side in trace.sides)
    if count <= limits.occurrences:
        return None
    return missing(word, f"it stands there {count:,} times, {limits.occurrences:,} are the most here")


def follow_word_in_page(
    page: Page,
    traces: Sequence[AnyTrace],
    word: str,
    references: Sequence[Trace],
    control: Sequence[Trace] | None,
    names: Sequence[str],
) -> None:
    """Add the word's path through traces before and after to their page. Raises RegardError for a word not there.

    references, control: as `see` has them. names: what each trace is called.
    """
    seen = on_a_page(traces, word, references, control)
    page.findings = [*page.findings, *(seen if isinstance(seen, list) else not_shown(seen.summary))]
    page.panels += [] if isinstance(seen, list) else movement_panels(seen.summary, names)


def _occurrences_to_follow(side: Trace, word: str) -> int:
    try:
        return len(side.word(word))
    except RegardError:
        return 0
