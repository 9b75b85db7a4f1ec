"""Choose the layer whose attention a first screen shows."""

from regard.explain.texts.summary import Summary
from regard.explain.weights.word_links import other_words


def layer_looked_at(summary: Summary) -> int | None:
    """Find the layer in which the occurrences attend most to another word, sinks aside: its place in their `attends`.

    The largest weights of the occurrences are summed. None if a trace holds no layer.
    """
    best: tuple[float, int] | None = None
    for place, rows in enumerate(zip(*(occurrence.attends for occurrence in summary.occurrences), strict=False)):
        total = 0.0
        for occurrence, row in zip(summary.occurrences, rows, strict=True):
            sinks = {sink.token for sink in summary.sinks[occurrence.text]}
            others = other_words(summary.tokens[occurrence.text], occurrence.tokens, sinks)
            total += max(((row.weights or [])[n] for n in others), default=0.0)
        if best is None or total > best[0]:
            best = total, place
    return None if best is None else best[1]
