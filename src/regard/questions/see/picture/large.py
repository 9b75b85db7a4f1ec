"""What a summary's picture draws large: of each text the head that its first sentence names, and its occurrences."""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.explain.texts.highlights import Link, most_distinctive_link
from regard.explain.texts.summary import Occurrence, Summary
from regard.explain.weights.attended import check_heads
from regard.explain.weights.specific_weights import SpecificWeight, specific_weights
from regard.trace.layer_subset import kept_numbers
from regard.trace.trace import Trace

OCCURRENCES = 8  # of a word in one text that are drawn
Large = tuple[Occurrence, SpecificWeight | None]  # an occurrence that is drawn large, and what is framed in it


@dataclass(frozen=True)
class Choice:
    """What is drawn large of a text. best: of each of its occurrences what that layer links it to most; link: of a
    text in which no word is followed, what is framed.
    """

    layer: int
    head: int | None
    best: list[SpecificWeight | None]
    link: Link | None = None


def choices(summary: Summary, traces: Sequence[Trace], layer: int | None, head: int | None) -> list[Choice]:
    """Choose what to draw large of each text: the head that the sentences name, the mean of heads where none is named.

    layer, head: those that were asked for, None for the ones that the sentences name.
    """
    layer, head = check_heads(traces[0], layer, head)
    first = kept_numbers(traces[0].attention)[0]
    made = []
    for n, trace in enumerate(traces):
        sinks = [sink.token for sink in summary.sinks[n]]
        if not summary.occurrences:
            link = most_distinctive_link(trace, layer, head, sinks)
            where = (first if layer is None else layer, head) if link is None else (link.layer, link.head)
            made.append(Choice(*where, [], link))
            continue
        words = [o.tokens for o in summary.occurrences if o.text == n]
        found = specific_weights(
            trace, words, sinks, layers=None if layer is None else [layer], head=head, words_alone=True
        )
        every = [each for weights in found for each in weights]
        best = max(every, key=lambda each: each.divergence, default=None)
        shown = best.layer if best is not None else first if layer is None else layer
        of_words = [next((w for w in every if (w.layer, list(w.queries)) == (shown, own)), None) for own in words]
        made.append(Choice(shown, head if best is None else best.head, of_words))
    return made


def reason_of(chosen: Choice) -> SpecificWeight | None:
    """The largest divergence in the head that is drawn."""
    here = [each for each in chosen.best if each is not None and each.head == chosen.head]
    return max(here, key=lambda each: each.divergence, default=None)


def drawn_large(summary: Summary, chosen: Sequence[Choice]) -> list[list[Large]]:
    """The occurrences of each text that are drawn large, with what is framed in each.

    The first eight of a text; of texts that were read in windows the eight in all whose words say most.
    """
    every = [
        list(zip([o for o in summary.occurrences if o.text == n], each.best, strict=True))
        for n, each in enumerate(chosen)
    ] if summary.occurrences else [[] for _ in chosen]  # fmt: skip
    if not summary.windows:
        return [text[:OCCURRENCES] for text in every]
    told = sorted((large for text in every for large in text), key=lambda large: -_divergence(large[1]))
    labels = {occurrence.label for occurrence, _ in told[:OCCURRENCES]}
    return [[large for large in text if large[0].label in labels] for text in every]


def not_all(summary: Summary, large: Sequence[Sequence[Large]]) -> list[str]:
    """Sentences on the occurrences that are not drawn large."""
    if summary.windows:
        shown, count = sum(map(len, large)), len(summary.occurrences)
        which = f"{shown} of {count} occurrences are drawn large, those whose attention says most about them"
        return [which] if shown < count else []
    counts = [sum(o.text == n for o in summary.occurrences) for n in range(len(summary.texts))]
    return [f"text {summary.labels[n]}: the first {OCCURRENCES} of {count} occurrences are drawn large"
            for n, count in enumerate(counts) if count > OCCURRENCES]  # fmt: skip


def _divergence(best: SpecificWeight | None) -> float:
    return 0.0 if best is None else best.divergence
