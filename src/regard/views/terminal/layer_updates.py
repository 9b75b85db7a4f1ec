"""How a word got from layer to layer, in a terminal: what attention and the rest of each layer did."""

from collections import Counter
from collections.abc import Collection, Mapping

from rich.console import Group
from rich.text import Text

from regard.explain.causes.layer_updates import LARGEST_SHARES, Attending
from regard.explain.findings.wording import signed
from regard.explain.texts.summary import Summary
from regard.explain.texts.word_updates import WordUpdates
from regard.views.terminal.layout import columns, in_title, section, shown, sink_name, spelled


def moving(word: WordUpdates, summary: Summary, side: str, width: int, source: Summary | None = None) -> Group:
    """Each layer's step, and the shares that attention (by token) and the rest of the layer have in it.

    source: of a target's word, the texts that the cross-attention looks at.
    """
    occurrence = next(o for o in summary.occurrences if o.label == word.occurrence)
    title = f"How {in_title(occurrence.word)} in {side} {word.occurrence} got from layer to layer"
    if word.updates is None:
        return section(title, Text(f"not shown: {word.refused}", style="dim"))
    crosses = any(step.cross for step in word.updates)
    heads: list[str | tuple[str, str]] = [("layer", "right"), ("length", "right"), ("attention", "right")]
    heads += [("cross", "right")] if crosses else []
    table = columns(*heads, ("rest", "right"), LARGEST_SHARES)
    room = max(
        20, width - 2 - sum(len(name) + 2 for name in ("layer", "length", "attention", "rest ")) - 7 * crosses - 1
    )
    looked_at = source if crosses and source is not None else summary
    counts = Counter(token.text for token in looked_at.tokens[occurrence.text])
    found = summary.sinks[occurrence.text]
    if crosses and source is not None and source.target is not None:
        found = source.target.alignments[occurrence.text].sinks
    sinks = {sink.token for sink in found}
    for step in word.updates:
        cells = [str(step.layer), f"{step.length:.2f}", _share(step.attention)]
        cells += [_share(step.cross)] if crosses else []
        table.add_row(
            *cells, shown(step.feed_forward_share, ".2f"), _sources(step.cross or step.attention, counts, room, sinks)
        )
    note = (
        "shares of the step, which sum to 1; rest: the feed-forward part and its norms; tokens: what they gave through "
        f"{'cross-attention' if crosses else 'attention'}, whose share holds its bias and norm as well"
    )
    return section(title, table, Text(note, style="dim"))


def _share(part: Attending | None) -> str:
    return "–" if part is None else shown(part.share, ".2f")


def _sources(part: Attending | None, counts: Mapping[str, int], room: int, sinks: Collection[int]) -> str:
    """The tokens with the largest shares, as many as fit on one line."""
    joined = ""
    for source in () if part is None else part.top:
        name = spelled(source.text, 14) + (f" ({source.token})" if counts[source.text] > 1 else "")
        name = sink_name(source.token, source.text) if source.token in sinks else name
        more = f"{name} {signed(source.share, '.2f')}"
        if joined and len(joined) + 2 + len(more) > room:
            break
        joined += ("  " if joined else "") + more
    return joined
