"""What is said before anything else: that a text is not in the tokenizer's vocabulary, and what to do then."""

from collections.abc import Sequence

from rich.text import Text

from regard.models.windows import WindowedTrace
from regard.text.quoting import quoted, some_of
from regard.trace.status import Status
from regard.trace.trace import PairTrace, Trace
from regard.views.terminal.layout import short

NAMED = 3  # unknown pieces and texts that are named

Read = tuple[str, Status, int]  # what a text is called, its status, how many tokens it has


def of_traces(traces: Sequence[Trace | PairTrace | WindowedTrace]) -> list[Read]:
    """The texts of traces, of windowed ones and of an encoder-decoder's, and their targets."""
    made = []
    for n, trace in enumerate(traces, 1):
        sides: Sequence[Trace | WindowedTrace] = trace.sides
        named = zip(("text", "target"), sides, strict=False)
        made += [(f"{side} {n}", each.status, len(each.tokens)) for side, each in named]
    return made


def unknown_first(texts: Sequence[Read]) -> list[Text]:
    """One line where a tokenizer knows some of the tokens not: how many, of how many, and what helps. Else nothing."""
    some = [each for each in texts if each[1].unknown]
    if not some:
        return []
    counts = [f"{len(status.unknown)} of {tokens} tokens" + (f" of {name}" if len(texts) > 1 else "")
              for name, status, tokens in some]  # fmt: skip
    pieces = list(dict.fromkeys(piece for _, status, _ in some for piece in status.unknown))
    warning = some_of(counts, NAMED) + f" unknown to the tokenizer of {some[0][1].model}: "
    warning += some_of([quoted(short(piece, 12)) for piece in pieces], NAMED)
    warning += ". To the model they are all the same; a model for that language or script reads them: --model M"
    return [Text(warning, style="yellow"), Text()]
