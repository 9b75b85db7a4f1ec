"""What a language model would say next, and what each of its layers would, in a terminal."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from regard.explain.logits.logit_lens import LogitLens
from regard.explain.logits.predictions import Candidate, Prediction
from regard.explain.texts.summary import Summary
from regard.text.quoting import quoted
from regard.views.terminal.layout import columns, in_title, section, shares, shown, spelled


def predictions(summary: Summary, side: str, width: int) -> Group:
    """The likeliest tokens after a place (causal models), or at it (masked language models)."""
    after = summary.predictions[0].after
    table = columns(side, "after" if after else "at", "likeliest tokens, and their probability")
    where = [_place(summary, each) for each in summary.predictions]
    room = max(
        30, width - 2 - max(map(len, [side, *(label for label, _ in where)])) - max(len(at) for _, at in where) - 6
    )
    for (label, at), each in zip(where, summary.predictions, strict=True):
        table.add_row(label, at, shares(_named(each.candidates), room))
    title = "What the model says next" if after else "What the model says here"
    return section(title, table)


def lens(lens: LogitLens, summary: Summary, side: str, width: int) -> Group:
    """What each layer would say at one place."""
    label, at = _place(summary, lens)
    final = quoted(spelled(lens.final.text))
    ranks = columns("", "likeliest tokens, and their probability", (f"rank of {final}", "right"))
    room = max(30, width - 2 - len("enters layer 0") - len(f"rank of {final}") - 6)
    for layer in lens.layers:
        name = "enters layer 0" if layer.state == 0 else f"after layer {layer.state - 1}"
        ranks.add_row(name, shares(_named(layer.candidates), room), str(layer.rank))
    parts: list[RenderableType] = [ranks]
    parts.append(
        Text(
            f"the model says {final}: {shown(lens.final.probability)}; its own final norm and head are put on each "
            f"state, and from the last give its logits within {lens.difference:.0e}",
            style="dim",
        )
    )
    where = f"{'After' if lens.after else 'At'} {in_title(at)} in {side} {label}"
    return section(f"{where}: what each layer would say (logit lens)", *parts)


def _place(summary: Summary, each: Prediction | LogitLens) -> tuple[str, str]:
    """The label of a text or occurrence, and the token with its number where there are more of its kind."""
    tokens = [token.text for token in summary.tokens[each.text]]
    at = spelled(each.at) + (f" ({each.token})" if tokens.count(each.at) > 1 else "")
    return each.occurrence or summary.labels[each.text], at


def _named(candidates: Sequence[Candidate]) -> list[tuple[str, float]]:
    return [(spelled(each.text), each.probability) for each in candidates]
